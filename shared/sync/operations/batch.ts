/** Applies a batch of operations: those on one record in order up to the first failure, those on different records concurrently. */
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { requireScope } from "#shared/auth/scopes.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { carryOut, type Plan, type Written } from "#shared/db/plan.ts";
import { isStopped, stoppedBefore } from "#shared/deadline.ts";
import { ApiError, ConditionFailed, invalid, isTransient, Outdated, problemBody, problems } from "#shared/errors.ts";
import { answerBytes } from "#shared/http/answer.ts";
import { validate } from "#shared/http/validate.ts";
import { isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import type { Problem } from "#shared/problem.ts";
import { createAppointment, updateAppointment } from "#shared/prospects/appointments.ts";
import { findClientRecords } from "#shared/prospects/client-records.ts";
import { createNote } from "#shared/prospects/notes.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { Appointment, Prospect } from "#shared/prospects/schema.ts";
import { createProspect, deleteProspect, setTags, updateProspect } from "#shared/prospects/write.ts";
import { currentDictionary, type Dictionary } from "#shared/reference/dictionary.ts";
import { Id } from "#shared/schema.ts";
import { HasReceipt, receiptOf, writtenBy } from "#shared/sync/operations/receipts.ts";
import {
  type Operation,
  type OperationBatch,
  type OperationResult,
  type OperationResults,
  type SentOperation,
  operations as schemas,
} from "#shared/sync/operations/schema.ts";
import { Uuid } from "#shared/uuid.ts";

/** Milliseconds before the deadline that remain for the response. An operation without a result then gets the outcome `retry`. */
const ANSWER_MS = 1_000;
const RECORDS_AT_ONCE = 8;

interface Step {
  /** The position of the operation in the batch. */
  readonly at: number;
  readonly sent: SentOperation;
  readonly operation: Operation | ApiError;
}

interface BatchRequest {
  readonly context: ApiContext & { readonly dictionary?: Dictionary };
  readonly caller: Caller;
  readonly requestId: string;
}

interface Batch extends BatchRequest {
  /** Returns false if the response has no room for this record beside those of earlier calls. */
  takesRecord(record: unknown): boolean;
}

export async function applyBatch(request: BatchRequest, { operations }: OperationBatch): Promise<OperationResults> {
  const steps = operations.map((sent, at): Step => ({ at, sent, operation: readOperation(sent) }));
  const { context, caller } = request;
  const [found, dictionary] = await Promise.all([
    findClientRecords(context, caller, namesToFind(steps)),
    currentDictionary(context, caller.companyId),
  ]);
  let bytes = 0;
  const takesRecord = (record: unknown): boolean => {
    bytes += answerBytes(JSON.stringify(record));
    return bytes <= limits.operationResultBytes;
  };
  const batch: Batch = { ...request, context: { ...context, dictionary }, takesRecord };
  const apply = (chain: Chain) => chain.apply(batch);
  const ends = await stoppedBefore(ANSWER_MS, () => mapConcurrently(chainsOf(steps, found), RECORDS_AT_ONCE, apply));
  const results = new Map(ends.flat());
  return { results: steps.map(({ at, sent: { opId } }) => ({ opId, ...(results.get(at) ?? retry(null)) })) };
}

const idOf = ({ sent: { id } }: Step): number | undefined => z.safeParse(Id, id).data;

const clientRecordOf = ({ sent: { type, clientRecordId } }: Step): string | undefined =>
  type === "appointment.update" ? undefined : z.safeParse(Uuid, clientRecordId).data?.toLowerCase();

/** Returns a name for the record of the operation. An operation without a valid id gets a name that no other operation has. */
function nameOf(step: Step): string {
  const id = idOf(step);
  const record = step.sent.type === "appointment.update" ? "appointment" : "prospect";
  return clientRecordOf(step) ?? (id === undefined ? `operation ${step.at}` : `${record} ${id}`);
}

/**
 * Returns each `clientRecordId` to look up. A prospect that the batch creates needs no look-up, unless another operation has an `id`: an
 * earlier request may have created the prospect, and then both ids may name the same one.
 */
function namesToFind(steps: readonly Step[]): Set<string> {
  const names = new Set(steps.flatMap((step) => clientRecordOf(step) ?? []));
  if (steps.some((step) => step.sent.type !== "appointment.update" && idOf(step) !== undefined)) return names;
  const isCreate = ({ operation }: Step): boolean =>
    !(operation instanceof ApiError) && operation.type === "prospect.create";
  const created = new Set(steps.filter(isCreate).map(clientRecordOf));
  return new Set([...names].filter((name) => !created.has(name)));
}

/** Groups the operations by record. `found` has the id of the prospect for each `clientRecordId` in the table. */
function chainsOf(steps: readonly Step[], found: ReadonlyMap<string, number>): Chain[] {
  const chains = new Map<string, Chain>();
  for (const step of steps) {
    const given = nameOf(step);
    const known = found.get(given) ?? idOf(step);
    const name = found.has(given) ? `prospect ${known}` : given;
    const chain = chains.get(name) ?? new Chain(known);
    chain.steps.push(step);
    chains.set(name, chain);
  }
  return [...chains.values()];
}

/** The operations on one record, in their order. */
class Chain {
  readonly steps: Step[] = [];
  #recordId: number | undefined;

  /** `recordId` is undefined if an operation creates the prospect. */
  constructor(recordId: number | undefined) {
    this.#recordId = recordId;
  }

  /** Returns results by the positions of their operations. An operation without a result gets the outcome `retry`. */
  async apply(batch: Batch): Promise<[at: number, result: Result][]> {
    const results: [number, Result][] = [];
    let isBlocked = false;
    for (const step of this.steps) {
      if (isStopped()) break;
      const result = await this.#applyStep(batch, step, isBlocked);
      // Only the result of a conflict has a record. The operation has written nothing, so it may get the outcome `retry` if the response
      // has no room for the record.
      if (result.record !== undefined && !batch.takesRecord(result.record)) break;
      results.push([step.at, result]);
      if (result.outcome === "retry") break;
      if (result.outcome !== "applied" && result.outcome !== "duplicate") isBlocked = true;
    }
    return results;
  }

  async #applyStep(batch: Batch, step: Step, isBlocked: boolean): Promise<Result> {
    try {
      return await this.#firstTry(batch, step, isBlocked);
    } catch (error) {
      const isCreate = step.sent.type === "prospect.create";
      if (isCreate && error instanceof HasReceipt) this.#recordId = error.written.id;
      const isOfProspect = !["note.create", "appointment.create"].includes(String(step.sent.type));
      return failed(error, batch.requestId, step.at, isOfProspect ? (this.#recordId ?? null) : null);
    }
  }

  async #firstTry({ context, caller }: Batch, step: Step, isBlocked: boolean): Promise<Result> {
    const { operation } = step;
    if (operation instanceof ApiError) throw isBlocked ? new Blocked() : operation;
    const { type } = operation;
    const name = type === "prospect.create" ? nameOf(step) : this.#recordId;
    const payload = { ...operation, id: undefined, clientRecordId: undefined, name };
    const receipt = receiptOf(context, caller, step.sent.opId, payload);
    try {
      if (isBlocked) throw new Blocked();
      const plan = await carryOut(() => planOf(context, caller, operation, this.#recordId), receipt.commit);
      const written = writtenBy(plan);
      if (type === "prospect.create") this.#recordId = written.id;
      return applied(written);
    } catch (error) {
      // An operation that was applied earlier may fail now, for example with `not_found` because the prospect was deleted since. `check`
      // then finds the receipt and throws HasReceipt.
      if (!(error instanceof HasReceipt) && !isTransient(error)) await receipt.check();
      // If a prospect already has the same `clientRecordId`, the result contains its id.
      if (type === "prospect.create" && error instanceof ApiError && error.code === "conflict") {
        this.#recordId ??= (await findClientRecords(context, caller, new Set([nameOf(step)]))).get(nameOf(step));
      }
      throw error;
    }
  }
}

const isType = (type: unknown): type is Operation["type"] => typeof type === "string" && Object.hasOwn(schemas, type);

function readOperation(sent: SentOperation): Operation | ApiError {
  const { type } = sent;
  if (!isType(type)) {
    const message = `must be one of ${Object.keys(schemas).join(", ")}`;
    return invalid(`The type of the operation ${message}.`, { pointer: "/type", code: "invalid_value", message });
  }
  try {
    return validate("body", schemas[type], sent);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** True if the service stores the operation's `occurredAt`. */
const isFact = (operation: Operation): boolean =>
  operation.type === "prospect.create"
    ? operation.fields.currentStatusId != null
    : operation.type !== "prospect.update" || operation.fields.currentStatusId !== undefined;

/**
 * Replaces an `occurredAt` that is slightly in the future with the present time, because clocks of devices differ. Throws
 * `validation_failed` if it is further in the future, or too old for a fact. Other operations are accepted at any age: a phone may be
 * offline for months. `readOperation` does not check the time, because an old operation that was applied before is a `duplicate`.
 */
function notAhead(operation: Operation, nowMs: number): Operation {
  if (!("occurredAt" in operation) || operation.occurredAt === undefined) return operation;
  const ageMs = nowMs - Date.parse(operation.occurredAt);
  if (ageMs < 0 && ageMs >= -limits.clockAheadMs) return { ...operation, occurredAt: iso(nowMs) };
  if (ageMs >= 0 && (ageMs <= limits.factAgeMs || !isFact(operation))) return operation;
  const message =
    ageMs < 0
      ? `must not be more than ${limits.clockAheadMs / 60_000} minutes in the future`
      : `must not be older than ${limits.factAgeMs / 86_400_000} days`;
  throw invalid(`occurredAt ${message}.`, { pointer: "/occurredAt", code: "out_of_range", message });
}

/** `id` is undefined for a prospect that the operation creates. */
export async function planOf(
  given: ApiContext,
  caller: Caller,
  sent: Operation,
  id: number | undefined,
): Promise<Plan<unknown>> {
  requireScope(caller, sent.type === "prospect.delete" ? "prospects:delete" : "prospects:write");
  const nowMs = given.clock.now();
  const operation = notAhead(sent, nowMs);
  // If `occurredAt` was replaced, the record's `createdAt` must be exactly the same time.
  const context = operation === sent ? given : { ...given, clock: { now: () => nowMs } };
  if (operation.type === "prospect.create") {
    const { fields, clientRecordId, ...arrival } = operation;
    return createProspect(context, caller, { ...fields, clientRecordId }, arrival);
  }
  if (id === undefined) throw new ApiError("not_found", "There is no such prospect.");
  switch (operation.type) {
    case "prospect.update":
      return updateProspect(context, caller, id, operation.fields, operation);
    case "prospect.delete":
      return deleteProspect(context, caller, id, operation);
    case "prospect.tags":
      return setTags(context, caller, id, operation.fields, operation);
    case "note.create":
      return createNote(context, caller, id, operation.fields, operation);
    case "appointment.create":
      return createAppointment(context, caller, id, operation.fields, operation);
    case "appointment.update":
      return updateAppointment(context, caller, id, operation.fields, operation);
  }
}

/** An earlier operation of the batch on the same record has failed. */
class Blocked extends Error {
  override readonly name = "Blocked";
}

type Result = Omit<OperationResult, "opId">;

const applied = ({ id, version }: Written): Result => ({ outcome: "applied", id, version: shownVersion(version) });

const retry = (id: number | null): Result => ({ outcome: "retry", id, version: null });

/** `at` is the position of the operation in the batch. */
function failed(error: unknown, requestId: string, at: number, id: number | null): Result {
  if (error instanceof HasReceipt) return { ...applied(error.written), outcome: "duplicate" };
  if (error instanceof Blocked) return { outcome: "blocked", id, version: null };
  if (error instanceof Outdated) return conflict(error);
  if (error instanceof ApiError && problems[error.code].status < 500) {
    return { outcome: "rejected", id, version: null, problem: problemAt(error, at, requestId) };
  }
  const isExpected = isTransient(error) || error instanceof ConditionFailed || error instanceof ApiError;
  if (isExpected) return retry(id);
  log.error("operation failed", errorFields(error));
  return { ...retry(id), problem: problemBody("internal", problems.internal.title, requestId, []) };
}

const conflict = ({ id, version, record }: Outdated): Result => ({
  outcome: "conflict",
  id,
  version: shownVersion(version),
  // Parsing removes the fields that the API does not show.
  record: isObject(record) && "startAt" in record ? Appointment.parse(record) : Prospect.parse(record),
});

/** Matches pointers to fields of the operation. Any other pointer is relative to `fields`, which has the form of an endpoint's body. */
const ofOperation = /^\/(?:type|id|clientRecordId|fields|baseVersion|occurredAt)(?:\/|$)/;

function problemAt({ code, message, faults }: ApiError, at: number, requestId: string): Problem {
  const moved = faults.map(({ pointer = "", ...fault }) => {
    const inside = ofOperation.test(pointer) ? pointer : `/fields${pointer}`;
    return { ...fault, pointer: `/operations/${at}${inside}` };
  });
  return problemBody(code, message, requestId, moved);
}
