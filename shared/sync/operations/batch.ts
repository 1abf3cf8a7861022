/**
 * Applies the operations of one batch. Operations on the same record are applied one after the other, and stop at the first failure.
 * Operations on different records are applied concurrently and do not depend on each other.
 */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { isStopped, stoppedBefore } from "#shared/deadline.ts";
import { ApiError, isTransient } from "#shared/errors.ts";
import { answerBytes } from "#shared/http/answer.ts";
import * as limits from "#shared/limits.ts";
import { findClientRecords } from "#shared/prospects/client-records.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { Id } from "#shared/schema.ts";
import { apply, readOperation } from "#shared/sync/operations/apply.ts";
import { HasReceipt, receiptOf } from "#shared/sync/operations/receipts.ts";
import { applied, Blocked, failed, type Result, retry } from "#shared/sync/operations/results.ts";
import type { Operation, OperationBatch, OperationResults, SentOperation } from "#shared/sync/operations/schema.ts";
import { Uuid } from "#shared/uuid.ts";

/**
 * Milliseconds before the deadline of the request at which the batch stops, so that time is left for the response. An operation without a
 * result then gets the outcome `retry`.
 */
const ANSWER_MS = 1_000;

interface Step {
  /** The position of the operation in the batch. */
  readonly at: number;
  readonly sent: SentOperation;
  /** The validated operation, or the reason why it is not valid. */
  readonly operation: Operation | ApiError;
}

/** The operations on one record, in their order. */
interface Chain {
  /** Undefined until the prospect is created. */
  recordId: number | undefined;
  readonly steps: Step[];
}

interface Batch {
  readonly context: ApiContext & { readonly dictionary?: Dictionary };
  readonly caller: Caller;
  readonly requestId: string;
}

export async function applyBatch(batch: Batch, { operations }: OperationBatch): Promise<OperationResults> {
  const steps = operations.map((sent, at): Step => ({ at, sent, operation: readOrFault(sent) }));
  const { context, caller } = batch;
  const [found, dictionary] = await Promise.all([
    findClientRecords(context, caller, namesToFind(steps)),
    currentDictionary(context, caller.companyId),
  ]);
  const shared: Batch = { ...batch, context: { ...context, dictionary } };
  const chains = chainsOf(steps, found);
  const results = new Map<number, Result>();
  const room = { bytes: limits.operationResultBytes };
  const waiting = chains.values();
  const work = async (): Promise<void> => {
    for (const chain of waiting) await applyChain(shared, chain, results, room);
  };
  await stoppedBefore(ANSWER_MS, () => Promise.all(Array.from({ length: limits.recordsAtOnce }, work)));
  return { results: steps.map(({ at, sent: { opId } }) => ({ opId, ...(results.get(at) ?? retry(null)) })) };
}

function readOrFault(sent: SentOperation): Operation | ApiError {
  try {
    return readOperation(sent);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Returns the id that the device has sent for the record, or undefined if it is missing or not valid. */
const idOf = ({ sent: { id } }: Step): number | undefined => z.safeParse(Id, id).data;

/** Returns the `clientRecordId` of the operation's prospect in lower case, or undefined if it is missing or not valid. */
const clientRecordOf = ({ sent: { type, clientRecordId } }: Step): string | undefined =>
  type === "appointment.update" ? undefined : z.safeParse(Uuid, clientRecordId).data?.toLowerCase();

/**
 * Returns a name for the record on which an operation works, made from the id that the device has sent. An operation without a valid id gets
 * a name that no other operation has.
 */
function nameOf(step: Step): string {
  const id = idOf(step);
  const record = step.sent.type === "appointment.update" ? "appointment" : "prospect";
  return clientRecordOf(step) ?? (id === undefined ? `operation ${step.at}` : `${record} ${id}`);
}

/**
 * Returns each `clientRecordId` that must be looked up in the table. If the batch itself creates the prospect, no look-up is needed. The
 * exception is a batch in which another operation names its prospect by `id`. An earlier request may have created the prospect already, and
 * then the `id` and the `clientRecordId` may name the same prospect. Only the table can tell.
 */
function namesToFind(steps: readonly Step[]): Set<string> {
  const names = new Set(steps.flatMap((step) => clientRecordOf(step) ?? []));
  if (steps.some((step) => step.sent.type !== "appointment.update" && idOf(step) !== undefined)) return names;
  const isCreate = ({ operation }: Step): boolean =>
    !(operation instanceof ApiError) && operation.type === "prospect.create";
  const created = new Set(steps.filter(isCreate).map(clientRecordOf));
  return new Set([...names].filter((name) => !created.has(name)));
}

/**
 * Groups the operations by record. An `id` and a `clientRecordId` may name the same prospect. `found` contains the id for each
 * `clientRecordId` that the table knows.
 */
function chainsOf(steps: readonly Step[], found: ReadonlyMap<string, number>): Chain[] {
  const chains = new Map<string, Chain>();
  for (const step of steps) {
    const given = nameOf(step);
    const known = found.get(given) ?? idOf(step);
    const name = found.has(given) ? `prospect ${known}` : given;
    const chain = chains.get(name) ?? { recordId: known, steps: [] };
    chain.steps.push(step);
    chains.set(name, chain);
  }
  return [...chains.values()];
}

async function applyChain(
  batch: Batch,
  chain: Chain,
  results: Map<number, Result>,
  room: { bytes: number },
): Promise<void> {
  let isBlocked = false;
  for (const step of chain.steps) {
    // An operation without a result gets the outcome `retry`. This operation and all later ones on the record have none.
    if (isStopped()) return;
    const result = await applyStep(batch, chain, step, isBlocked);
    // A conflict returns the current record. If the response has no room for it, the operation gets no result and therefore the outcome
    // `retry`. This is safe, because nothing was written: the device sends the operation again, and gets the record then.
    if (result.record !== undefined) room.bytes -= answerBytes(JSON.stringify(result.record));
    if (result.record !== undefined && room.bytes < 0) return;
    results.set(step.at, result);
    if (result.outcome === "retry") return;
    if (result.outcome !== "applied" && result.outcome !== "duplicate") isBlocked = true;
  }
}

async function applyStep(batch: Batch, chain: Chain, step: Step, isBlocked: boolean): Promise<Result> {
  const { requestId } = batch;
  try {
    return await firstTry(batch, chain, step, isBlocked);
  } catch (error) {
    const isCreate = step.sent.type === "prospect.create";
    if (isCreate && error instanceof HasReceipt) chain.recordId = error.written.id;
    const isOfProspect = !["note.create", "appointment.create"].includes(String(step.sent.type));
    return failed(error, { requestId, at: step.at, id: isOfProspect ? (chain.recordId ?? null) : null });
  }
}

async function firstTry({ context, caller }: Batch, chain: Chain, step: Step, isBlocked: boolean): Promise<Result> {
  const { operation } = step;
  if (operation instanceof ApiError) throw isBlocked ? new Blocked() : operation;
  const { type, ...payload } = operation;
  const name = type === "prospect.create" ? nameOf(step) : chain.recordId;
  const receipt = receiptOf(context, caller, step.sent.opId, {
    ...payload,
    type,
    id: undefined,
    clientRecordId: undefined,
    name,
  });
  try {
    if (isBlocked) throw new Blocked();
    await apply(receipt.context, caller, operation, chain.recordId);
  } catch (error) {
    // If the transaction has committed, the operation is applied, even if a read after it has failed.
    if (receipt.written() === undefined) {
      // The error may be misleading. For example, an earlier request has applied this operation, and the prospect was deleted afterwards.
      // The repeated operation then fails with `not_found`. `check` finds the receipt in this case and throws HasReceipt.
      if (!(error instanceof HasReceipt) && !isTransient(error)) await receipt.check();
      // A creation is rejected if a prospect already has the same `clientRecordId`. The result then contains the id of this prospect.
      if (type === "prospect.create" && error instanceof ApiError && error.code === "conflict") {
        chain.recordId ??= (await findClientRecords(context, caller, new Set([nameOf(step)]))).get(nameOf(step));
      }
      throw error;
    }
  }
  const written = receipt.written();
  if (written === undefined) throw new Error(`${type} has ended without a commit`);
  if (type === "prospect.create") chain.recordId = written.id;
  return applied(written);
}
