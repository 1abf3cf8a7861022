/**
 * Measures the read units and rounds of `GET /api/changes` in a warm function that has no rows in memory (budget 17 of docs/benchmarks.md).
 */
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf, IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import type { ProspectPatch } from "#shared/prospects/input.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { createAppointment, createNote, createProspect, updateProspect } from "../harness/verbs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { newProspectAt } from "./prospects.ts";
import type { Stage } from "./stage.ts";

/** Maximum number of records in one answer of `GET /api/changes`. */
const PAGE = 500;
const CREATIONS = 63;
const CHANGED = 60;
/**
 * Difference between successive ids in `apart`. A partition contains 128 consecutive ids, so these prospects are spread over more
 * partitions than the same number of `neighbours`.
 */
const APART = 7;

const all = { least: 1, settleMs: 0 };

/**
 * Replaces the encryption of cursors. The real encryption would need no units either, because a warm function has the company's data key in
 * memory.
 */
const secrets: ApiContext["secrets"] = {
  seal: async (_, __, text) => Buffer.from(text),
  open: async (_, __, sealed) => Buffer.from(sealed).toString(),
};

export async function pullBudgets(stage: Stage): Promise<Budget[]> {
  const { company, caller } = stage;
  const context: ApiContext = { ...stage.context, secrets };
  const { table } = context;
  const line = budgetsOf(sizeOf(company.count));
  const lines = (text: string, units: number, rounds: number, usage: Pick<Usage, "readUnits" | "rounds">): Budget[] => [
    line(17, `${text}, read units`, units, usage.readUnits),
    line(17, `${text}, rounds`, rounds, usage.rounds),
  ];
  let cursor: string | undefined;
  /** A rep who sees only the prospects that this bench assigns to this user. */
  const rep: Caller = { ...caller, role: "sales", permissions: [] };
  const pull = async (reader = rep, types: ChangeType[] = ["prospects"]): Promise<Usage & { items: number }> => {
    forgetRows(table, caller.companyId);
    const page = () => readChanges(context, reader, { limit: PAGE, types, cursor });
    const { result, usage } = await metered(page);
    ({ cursor } = result);
    // Without this pause, the service would also read the prospect of a note that changed within 5 ms after the client's last request.
    stage.clock.ms += 10;
    return { ...usage, items: result.items.length };
  };
  const flushed = async (): Promise<void> => {
    await flush(context, company.id, all);
  };
  const create = (at: number) =>
    createProspect(context, caller, { ...newProspectAt(company, at), assignedToUserId: caller.userId });
  const change = async (ids: readonly number[], fields: ProspectPatch): Promise<void> => {
    for (const id of ids) await updateProspect(context, caller, id, fields);
  };

  await stage.fillFirst(PAGE);
  await flushed();
  const bare = await metered(() => readBlocks(table, company.id, company.firstId, PAGE));
  await pull(caller);
  cursor = undefined;
  const snapshot = await pull(caller);
  if (snapshot.items !== PAGE) throw new Error(`the snapshot's first page has ${snapshot.items} prospects`);

  cursor = undefined;
  await pull();
  await pull();
  const idle = await pull();
  const neighbours = Array.from({ length: CHANGED }, (_, i) => company.firstId + i);
  const apart = neighbours.map((id, i) => id + CHANGED + i * (APART - 1));
  await change(neighbours, { assignedToUserId: caller.userId });
  const unflushed = await pull();
  await flushed();
  await change(neighbours, { currentStatusId: company.statuses[2]?.id });
  await flushed();
  const afterFlushes = await pull();
  await change(apart, { assignedToUserId: caller.userId });
  await flushed();
  const scattered = await pull();
  await change(apart, { currentStatusId: company.statuses[1]?.id });
  const scatteredUnflushed = await pull();
  await flushed();
  for (let i = 0; i < CREATIONS; i++) await create(i);
  await flushed();
  for (let i = 0; i < CREATIONS; i++) await create(i);
  await pull();
  const busy = await pull();
  await flushed();
  cursor = undefined;
  const attached = await attachedPulls(context, rep, apart, flushed, () => pull(rep, [...ChangeType.options]));
  return [
    ...lines("request for changes that finds nothing", 1, 1, idle),
    ...lines(`request for changes that finds nothing, ${CREATIONS} unflushed rows`, 1 + CREATIONS / 8, 1, busy),
    ...lines(`${CHANGED} changed neighbours, not flushed`, CHANGED + 3, 2, unflushed),
    ...lines(`${CHANGED} changed neighbours, after two flushes`, CHANGED + 3, 3, afterFlushes),
    ...lines(`${CHANGED} changed prospects, ${APART} ids apart, after a flush`, CHANGED + 3, 3, scattered),
    ...lines(`${CHANGED} changed prospects, ${APART} ids apart, not flushed`, CHANGED + 3, 2, scatteredUnflushed),
    ...attached.flatMap(({ text, units, rounds, usage }) => lines(text, units, rounds, usage)),
    line(17, `page of ${PAGE} prospects of a snapshot / a bare Query`, 1.1, snapshot.readUnits / bare.usage.readUnits),
    line(17, `page of ${PAGE} prospects of a snapshot, rounds`, 2, snapshot.rounds),
  ];
}

interface AttachedPull {
  readonly text: string;
  /** Maximum read units. */
  readonly units: number;
  readonly rounds: number;
  readonly usage: Usage;
}

/**
 * Measures requests to `GET /api/changes` of a rep who reads all types of records: after changes of notes and appointments, and after
 * prospects without notes and appointments have moved to another user.
 *
 * @param ids prospects that are far apart and visible to the rep
 * @param pull requests one page, the first time that of a snapshot
 */
async function attachedPulls(
  context: ApiContext,
  caller: Caller,
  ids: readonly number[],
  flushed: () => Promise<void>,
  pull: () => Promise<Usage & { items: number }>,
): Promise<AttachedPull[]> {
  const admin: Caller = { ...caller, role: "owner" };
  const found: AttachedPull[] = [];
  const newest = async (): Promise<void> => {
    while ((await pull()).items > 0);
  };
  /** @param unitsOfOne maximum read units for each change. A request may use three more units for the change log. */
  const measured = async (text: string, changes: number, unitsOfOne: number, rounds: number): Promise<void> => {
    const { items, ...usage } = await pull();
    if (items !== changes) throw new Error(`the page has ${items} items and not ${changes}`);
    found.push({ text: `${changes} ${text}`, units: unitsOfOne * changes + 3, rounds, usage });
  };
  const measure = async (text: string, changes: number, write: (id: number) => Promise<unknown>): Promise<void> => {
    for (const id of ids) await write(id);
    await measured(`${text}, not flushed`, changes, 1, 2);
    await flushed();
    await newest();
    for (const id of ids) await write(id);
    await flushed();
    await measured(`${text}, after a flush`, changes, 1, 3);
    await newest();
  };
  await newest();
  const visit = { title: "Roof inspection", startAt: "2030-06-01T14:00:00.000Z", endAt: "2030-06-01T15:00:00.000Z" };
  await measure("new notes", ids.length, (id) => createNote(context, caller, id, { body: "Call again on Monday" }));
  await measure("new appointments and their prospects", 2 * ids.length, (id) =>
    createAppointment(context, caller, id, visit),
  );
  const fresh: number[] = [];
  for (let i = 0; i < ids.length * APART; i++) {
    const { id } = await createProspect(context, admin, { name: "Maria Garcia", assignedToUserId: caller.userId });
    if (i % APART === 0) fresh.push(id);
  }
  await flushed();
  await newest();
  for (const id of fresh) await updateProspect(context, admin, id, { assignedToUserId: null });
  // A prospect's row costs half a unit. The Queries for its notes and for its appointments cost a unit each, even if they find nothing.
  await measured("prospects without notes that a rep loses, not flushed", fresh.length, 2.5, 2);
  return found;
}

/** Reads prospects with consecutive ids, with one Query for each partition. */
async function readBlocks(table: Table, companyId: number, first: number, count: number): Promise<void> {
  for (let from = first; from < first + count; from = (blockOf(from) + 1) * IDS_PER_PARTITION) {
    const span = keys.prospectSpan(companyId, from, first + count - 1);
    for await (const _ of table.query({ ...span, consistency: "eventual" }));
  }
}
