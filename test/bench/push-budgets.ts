/** Measures how many write units an offline device's operation costs more than a single API request (budget 16 of docs/benchmarks.md). */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import * as api from "../harness/verbs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import type { Stage } from "./stage.ts";

/** Number of operations of each kind. The result is the mean of their costs. */
const OPERATIONS = 50;
/** Maximum additional write units of an operation: two for the receipt (as for each row in a transaction), the rest for reserving ids. */
const WRITE_UNITS = 2.1;

interface Kind {
  readonly type: string;
  readonly fields: object;
  /** True if the operation names its prospect by `clientRecordId` instead of the id. */
  readonly byClientRecord?: true;
  readonly single: (id: number) => Promise<unknown>;
}

function kindsOf(context: ApiContext, caller: Caller, currentStatusId: number): Readonly<Record<string, Kind>> {
  const [name, status, note] = [{ name: "A" }, { currentStatusId }, { body: "Wants a quote." }];
  const visit = { title: "Inspection", startAt: "2040-01-01T10:00:00.000Z" };
  const creation = (fields: object): Kind => ({
    type: "prospect.create",
    fields,
    single: () => api.createProspect(context, caller, { ...fields, clientRecordId: randomUUID() }),
  });
  const ofProspect = (type: string, fields: object, single: Kind["single"]): Kind => ({ type, fields, single });
  const update = ofProspect("prospect.update", status, (id) => api.updateProspect(context, caller, id, status));
  return {
    "create with status": creation({ ...name, ...status }),
    create: creation(name),
    "change of the status": update,
    "change of the status, by clientRecordId": { ...update, byClientRecord: true },
    tags: ofProspect("prospect.tags", { tagIds: [] }, (id) => api.setTags(context, caller, id, { tagIds: [] })),
    note: ofProspect("note.create", note, (id) => api.createNote(context, caller, id, note)),
    appointment: ofProspect("appointment.create", visit, (id) => api.createAppointment(context, caller, id, visit)),
    deletion: ofProspect("prospect.delete", {}, (id) => api.deleteProspect(context, caller, id)),
  };
}

export async function pushBudgets({ context, caller, company }: Stage): Promise<Budget[]> {
  const budgets: Budget[] = [];
  const line = budgetsOf(sizeOf(company.count));
  const kinds = kindsOf(context, caller, company.statuses[1]?.id ?? 0);
  for (const [text, { type, fields, byClientRecord, single }] of Object.entries(kinds)) {
    const made: { id: number; clientRecordId: string }[] = [];
    for (let i = 0; i < 2 * OPERATIONS; i++) {
      const clientRecordId = randomUUID();
      made.push({ id: (await api.createProspect(context, caller, { clientRecordId })).id, clientRecordId });
    }
    const ids = made.slice(0, OPERATIONS).map(({ id }) => id);
    const alone = await writeUnitsOf(ids, single);
    const operations = made.slice(OPERATIONS).map(({ id, clientRecordId }) => ({
      opId: randomUUID(),
      type,
      fields,
      ...(type === "prospect.create" ? { clientRecordId: randomUUID() } : byClientRecord ? { clientRecordId } : { id }),
    }));
    const { result, usage } = await metered(() =>
      applyBatch({ context, caller, requestId: "bench" }, { deviceId: "bench", operations }),
    );
    const failed = result.results.find(({ outcome }) => outcome !== "applied");
    if (failed !== undefined) throw new Error(`an operation of the measured batch is ${failed.outcome}`);
    const more = (usage.writeUnits - alone) / OPERATIONS;
    budgets.push(line(16, `pushed ${text}, write units more than a single one`, WRITE_UNITS, more));
  }
  return budgets;
}

async function writeUnitsOf(ids: readonly number[], work: (id: number) => Promise<unknown>): Promise<number> {
  let sum = 0;
  for (const id of ids) sum += (await metered(() => work(id))).usage.writeUnits;
  return sum;
}
