/** Measures the costs of writes, of a list that must read unflushed entries, and of flushes (budgets 1, 3 and 6 of docs/benchmarks.md). */
import { prospectDelta } from "#shared/company-index/write/entries.ts";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/write/flush.ts";
import { RETIRED_MS } from "#shared/company-index/write/garbage-collection.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { createProspect, deleteProspect, findOrMake, updateProspect } from "../harness/verbs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { listQuery } from "./lists.ts";
import { type BenchCompany, makeProspect, newProspectAt } from "./prospects.ts";
import type { Stage } from "./stage.ts";

const atTheDoor = (company: BenchCompany, at: number): NewProspect => ({
  ...newProspectAt(company, at),
  currentStatusId: company.statuses[0]?.id,
});

const ADDRESS = { address1: "1234 Camelback Rd", address2: null, city: "Phoenix", state: "AZ", zip: "85018" };

/** Created prospects whose index entries are not flushed when the list is measured. */
const UNFLUSHED = 56;

export async function writeBudgets({ company, caller, context }: Stage): Promise<Budget[]> {
  const list = async () => {
    forgetRows(context.table, caller.companyId);
    return (await metered(() => listProspects(context, caller, listQuery(company, "one rep")))).usage.readUnits;
  };
  const before = await list();
  const { id } = await createProspect(context, caller, atTheDoor(company, 0));
  const create = await metered(() => createProspect(context, caller, atTheDoor(company, 1)));
  const assignedToUserId = company.repIds[0];
  const assigned = await metered(() => createProspect(context, caller, { ...atTheDoor(company, 2), assignedToUserId }));
  const whole = { ...atTheDoor(company, 3), assignedToUserId, address: ADDRESS };
  await createProspect(context, caller, { address: ADDRESS });
  const all = await metered(() => createProspect(context, caller, whole));
  for (let at = 5; at < UNFLUSHED; at++) await createProspect(context, caller, atTheDoor(company, at));
  const after = await list();
  const lead = { ...atTheDoor(company, UNFLUSHED), sourceId: "lead-1" };
  const findOrMakeLead = () =>
    metered(() => findOrMake(context, caller, { matchBy: "sourceId", onMatch: "skip" }, lead));
  const [made, found] = [await findOrMakeLead(), await findOrMakeLead()];
  const currentStatusId = company.statuses[1]?.id;
  const patch = await metered(() => updateProspect(context, caller, id, { currentStatusId }));
  const removal = await metered(() => deleteProspect(context, caller, id));
  const line = budgetsOf(sizeOf(company.count));
  return [
    line(1, `read units of ${UNFLUSHED} unflushed rows`, UNFLUSHED / 14, after - before),
    line(3, "create, rounds", 1, create.usage.rounds),
    line(3, "patch, rounds", 2, patch.usage.rounds),
    line(3, "delete, rounds", 2, removal.usage.rounds),
    line(6, "create with status, write units", 6, create.usage.writeUnits),
    line(6, "create with status and assignee, write units", 6, assigned.usage.writeUnits),
    line(6, "create with status, assignee and a new address, write units", 8, all.usage.writeUnits),
    line(6, "patch of the status, write units", 6, patch.usage.writeUnits),
    line(6, "delete, write units", 4, removal.usage.writeUnits),
    line(6, "find or make, made: write units", 8, made.usage.writeUnits),
    line(6, "find or make, found: write units", 0, found.usage.writeUnits),
    line(1, "find or make, found: read units", 10, found.usage.readUnits),
  ];
}

/**
 * Measures the background work of one create (budget 6): the mean write units of flushes, of merges, and of deletions of replaced parts.
 */
export async function backgroundBudgets(stage: Stage, creates: number): Promise<Budget[]> {
  const { ids } = stage.context;
  const { id } = stage.company;
  // The import that has filled the index has left replaced parts. These flushes delete them, so that the measurement does not include this
  // deletion.
  for (let i = 0; i < 2; i++) await flushCreates(stage, await ids.takeProspects(id, FLUSH_ENTRIES));
  const created = await ids.takeProspects(id, creates);
  let writeUnits = 0;
  for (let done = 0; done < creates; done += FLUSH_ENTRIES) {
    writeUnits += (await flushCreates(stage, created.slice(done, done + FLUSH_ENTRIES))).writeUnits;
  }
  // The largest part of the index is merged only after many creates, so the limit is higher then.
  const limit = creates > 10_000 ? 1.6 : 1.4;
  const text = `create, write units in the background, mean of ${creates}`;
  return [budgetsOf(sizeOf(stage.company.count))(6, text, limit, writeUnits / creates)];
}

async function flushCreates({ company, context, clock }: Stage, ids: readonly number[]): Promise<Usage> {
  const entries = ids.flatMap((id) =>
    // Entries are flushed soon after their creation, so the facts of one flush belong to one or two days. Facts of many days would cost
    // more. `createdAt` is therefore the time of the flush, and not that of the synthetic prospect.
    prospectDelta(
      company.id,
      { ...indexRow(makeProspect(company, id % company.count).prospect), id, createdAt: clock.ms },
      null,
      { fact: { by: company.repIds[id % company.repIds.length] } },
    ),
  );
  await context.table.batchPut(entries.flatMap((write) => ("put" in write ? [write.put] : [])));
  clock.ms += RETIRED_MS + 1;
  return (await metered(() => flush(context, company.id, { settleMs: 0 }))).usage;
}
