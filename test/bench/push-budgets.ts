/**
 * Measures budget 16 of docs/benchmarks.md: how much more an operation of `POST /api/sync/operations` costs than a separate request with
 * the same write. Each operation also writes a receipt, the row by which a repeated operation is recognized. The receipt of a creation or
 * deletion of a prospect is written before the transaction, and costs one write unit. All other receipts are part of the transaction and
 * cost two, because DynamoDB charges two for each row of a transaction. One request with many operations reads the names of statuses, tags
 * and users only once, which saves a read unit for most operations.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import { createAppointment } from "#shared/prospects/appointments.ts";
import { createNote } from "#shared/prospects/notes.ts";
import { createProspect, deleteProspect, setTags, updateProspect } from "#shared/prospects/write.ts";
import { applyBatch } from "#shared/sync/operations/batch.ts";
import { type Budget, sizeOf } from "./budget.ts";
import type { Stage } from "./stage.ts";

/** Number of measured operations of each kind. The result is the mean of their costs. */
const OPERATIONS = 50;

interface Kind {
  readonly text: string;
  readonly type: string;
  readonly fields: object;
  /** True if the operation names its prospect by the `clientRecordId` of the prospect instead of its id. */
  readonly byClientRecord?: true;
  readonly single: (id: number) => Promise<unknown>;
  /** Maximum difference between the units (reads and writes together) of the operation and those of the separate request. */
  readonly limit: number;
  /** Maximum difference between the write units of the operation and those of the separate request. */
  readonly writeLimit: number;
}

function kindsOf(context: ApiContext, caller: Caller, currentStatusId: number): Kind[] {
  const [title, startAt, body] = ["Inspection", "2040-01-01T10:00:00.000Z", "Wants a quote."];
  const status = { currentStatusId };
  const create = (fields: object) => () => createProspect(context, caller, { ...fields, clientRecordId: randomUUID() });
  return [
    {
      text: "create with status",
      type: "prospect.create",
      fields: { name: "A", ...status },
      single: create({ name: "A", ...status }),
      limit: 0,
      writeLimit: 0,
    },
    {
      text: "create",
      type: "prospect.create",
      fields: { name: "A" },
      single: create({ name: "A" }),
      limit: 1.1,
      writeLimit: 1.1,
    },
    {
      text: "change of the status",
      type: "prospect.update",
      fields: status,
      single: (id) => updateProspect(context, caller, id, status),
      limit: 1.1,
      writeLimit: 2.1,
    },
    {
      text: "change of the status, by clientRecordId",
      type: "prospect.update",
      fields: status,
      byClientRecord: true,
      single: (id) => updateProspect(context, caller, id, status),
      limit: 1.6,
      writeLimit: 2.1,
    },
    {
      text: "tags",
      type: "prospect.tags",
      fields: { tagIds: [] },
      single: (id) => setTags(context, caller, id, { tagIds: [] }),
      limit: 1.1,
      writeLimit: 2.1,
    },
    {
      text: "note",
      type: "note.create",
      fields: { body },
      single: (id) => createNote(context, caller, id, { body }),
      limit: 1.1,
      writeLimit: 2.1,
    },
    {
      text: "appointment",
      type: "appointment.create",
      fields: { title, startAt },
      single: (id) => createAppointment(context, caller, id, { title, startAt }),
      limit: 1.1,
      writeLimit: 2.1,
    },
    {
      text: "deletion",
      type: "prospect.delete",
      fields: {},
      single: (id) => deleteProspect(context, caller, id),
      limit: 1.1,
      writeLimit: 1.1,
    },
  ];
}

export async function pushBudgets({ context, caller, company }: Stage): Promise<Budget[]> {
  const budgets: Budget[] = [];
  const size = sizeOf(company.count);
  for (const kind of kindsOf(context, caller, company.statuses[1]?.id ?? 0)) {
    const { text, type, fields, byClientRecord, single, limit, writeLimit } = kind;
    const made: { id: number; clientRecordId: string }[] = [];
    for (let i = 0; i < 2 * OPERATIONS; i++) {
      const clientRecordId = randomUUID();
      made.push({ id: (await createProspect(context, caller, { clientRecordId })).id, clientRecordId });
    }
    const ids = made.slice(0, OPERATIONS).map(({ id }) => id);
    const alone = await usageOf(ids, single);
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
    const line = (what: string, most: number | null, units: (of: Pick<Usage, "readUnits" | "writeUnits">) => number) =>
      budgets.push({
        number: 16,
        text: `pushed ${text}, ${what} more than a single one`,
        size,
        limit: most,
        measured: (units(usage) - units(alone)) / OPERATIONS,
      });
    line("units", limit, ({ readUnits, writeUnits }) => readUnits + writeUnits);
    line("write units", writeLimit, ({ writeUnits }) => writeUnits);
  }
  return budgets;
}

async function usageOf(
  ids: readonly number[],
  work: (id: number) => Promise<unknown>,
): Promise<Pick<Usage, "readUnits" | "writeUnits">> {
  const sum = { readUnits: 0, writeUnits: 0 };
  for (const id of ids) {
    const { usage } = await metered(() => work(id));
    sum.readUnits += usage.readUnits;
    sum.writeUnits += usage.writeUnits;
  }
  return sum;
}
