/** Measures what notes, past statuses and appointments add to the cost of a list and of a detail (budget 14 of docs/benchmarks.md). */
import { iso } from "#shared/clock.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { listQuery } from "./lists.ts";
import type { Stage } from "./stage.ts";

/** Number of notes of each listed prospect. budgets.long.test.ts uses fewer, because writing the notes takes most of its time. */
export const NOTES = 1_000;
const STATUSES = 20;
const APPOINTMENTS = 20;
/** Number of notes, each of the maximum size (10 KB), of the prospect whose detail is read. */
const LONG_NOTES = 300;

export async function attachedBudgets(stage: Stage, notes: number): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const query = listQuery(company, "everything");
  const list = async (within = context) => (await metered(() => listProspects(within, caller, query))).usage;
  const [warm, cold] = [await list(), await list(stage.cold())];
  const { items } = await listProspects(context, caller, query);
  for (const { id } of items) await context.table.batchPut(attachedRows(company.id, id, notes, "x".repeat(100)));
  const [warmThen, coldThen] = [await list(), await list(stage.cold())];
  const last = items.at(-1)?.id ?? 0;
  await context.table.batchPut(attachedRows(company.id, last, LONG_NOTES, "x".repeat(10_000)));
  const detail = (await metered(() => readProspect(context, caller, last))).usage;
  const line = budgetsOf(`${sizeOf(company.count)}, ${notes} notes each`);
  return [
    line(14, "warm list of neighbours, read units", 6, warmThen.readUnits),
    line(14, "warm list of neighbours, times as many as without notes", 1, warmThen.readUnits / warm.readUnits),
    line(14, "cold list, times as many as without notes", 1, coldThen.readUnits / cold.readUnits),
    line(14, "warm list, rounds", 2, warmThen.rounds),
    line(14, `detail with ${LONG_NOTES} notes of 10 KB, rounds`, 1, detail.rounds),
    line(14, `detail with ${LONG_NOTES} notes of 10 KB, read units`, 24, detail.readUnits),
  ];
}

function attachedRows(companyId: number, prospectId: number, notes: number, body: string): (Key & Item)[] {
  const at = (i: number): string => iso(Date.UTC(2026, 0, 1) + i);
  const rows = (count: number, row: (i: number) => Key & Item): (Key & Item)[] =>
    Array.from({ length: count }, (_, i) => row(i + 1));
  const dated = (i: number) => ({ createdAt: at(i), updatedAt: at(i), createdBy: null, version: 1 });
  const change = { status: null, previousStatus: null, changedBy: 1, source: "api" };
  const appointment = { title: "Inspection", endAt: null, allDay: false, status: "completed", location: null };
  const of = { companyId, prospectId };
  return [
    ...rows(notes, (id) => ({
      ...attachedKeys.note(companyId, prospectId, at(id), id),
      ...{ type: "note", id, ...of, body, ...dated(id) },
    })),
    ...rows(STATUSES, (version) => ({
      ...attachedKeys.history(companyId, prospectId, version),
      ...{ type: "history", id: version, prospectId, ...change, createdAt: at(version), version },
    })),
    ...rows(APPOINTMENTS, (id) => ({
      ...attachedKeys.appointment(companyId, prospectId, id),
      ...{ type: "appointment", id, ...of, ...appointment, notes: null, assignedToUserId: null },
      ...{ startAt: at(id), ...dated(id) },
    })),
  ];
}
