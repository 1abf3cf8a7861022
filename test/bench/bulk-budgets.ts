/**
 * Measures the budget of bulk jobs in docs/benchmarks.md: the read and write units of a bulk job, divided by those of single requests that
 * change the same number of prospects.
 */
import type { JobContext } from "#shared/context.ts";
import { metered, type Usage } from "#shared/db/meter.ts";
import { bulkJob } from "#shared/jobs/bulk/run.ts";
import { runJob } from "#shared/jobs/job.ts";
import { createBulk, createProspect, updateProspect } from "../harness/verbs.ts";
import { memoryBucket } from "../jobs/faulty-jobs.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { makeProspect } from "./prospects.ts";
import type { Stage } from "./stage.ts";

const RECORDS = 200;

export async function bulkBudgets({ company, caller, context }: Stage): Promise<Budget[]> {
  const made = async (): Promise<number[]> => {
    const ids: number[] = [];
    for (let i = 0; i < RECORDS; i++) {
      const { name, phoneNumber, emailAddress, lat, lng } = makeProspect(company, i % company.count).prospect;
      ids.push((await createProspect(context, caller, { name, phoneNumber, emailAddress, lat, lng })).id);
    }
    return ids;
  };
  const currentStatusId = company.statuses[1]?.id;
  const assignedToUserId = company.repIds[0];
  const set = { currentStatusId, assignedToUserId };
  const single = await made();
  const ones = await metered(async () => {
    for (const id of single) await updateProspect(context, caller, id, set);
  });
  const ids = await made();
  const jobs = { send: async () => undefined, returnIn: async () => undefined };
  const jobContext: JobContext = { ...context, objects: memoryBucket(), jobs };
  const bulk = await metered(async () => {
    const job = await createBulk(jobContext, jobContext, caller, { ids, action: { set } });
    if (!("id" in job)) throw new Error("a dry run is no job");
    await runJob(bulkJob(), jobContext, { companyId: company.id, id: job.id }, () => 300_000);
  });
  const units = ({ readUnits, writeUnits }: Usage): number => readUnits / 2 + writeUnits;
  const ratio = (of: (usage: Usage) => number): number => of(bulk.usage) / of(ones.usage);
  const text = `bulk change of ${RECORDS} prospects, relative to single changes`;
  const size = sizeOf(company.count);
  return [
    { number: 6, text: `${text}: write units`, size, limit: 1.1, measured: ratio(({ writeUnits }) => writeUnits) },
    { number: 6, text: `${text}: all units, of which a read costs half`, size, limit: 1.1, measured: ratio(units) },
  ];
}
