/** Refuses a run over a territory if another run, which has not ended, works on prospects of the same area. */
import type { Objects } from "#shared/aws/s3.ts";
import { polygonArea } from "#shared/company-index/areas.ts";
import type { Area } from "#shared/company-index/criteria.ts";
import type { ReadContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { hasEnded, StoredBulk, type StoredQueue } from "#shared/jobs/bulk/stored.ts";
import { bulkKeys } from "#shared/jobs/s3-keys.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { unpackPolygon } from "#shared/reference/polygon.ts";

interface Run {
  readonly companyId: number;
  readonly territoryId: number;
  readonly area: Area;
}

/**
 * Throws `conflict` with the id of the first run that overlaps. Two runs overlap if they have the same territory, or if at least one
 * prospect of the company is in both polygons. The polygons are those of the time at which the runs were created. The filters of the runs
 * do not matter, because prospects may change until the runs write them.
 */
export async function refuseOverlap(
  context: ReadContext,
  objects: Objects,
  { companyId, territoryId, area }: Run,
  { running, waiting, paused }: StoredQueue,
): Promise<void> {
  const open = [...(running === null ? [] : [running]), ...waiting, ...paused];
  const rows = await context.table.batchGet(open.map((id) => keys.bulkJob(companyId, id)));
  const jobs = new Map(rows.map((row) => StoredBulk.parse(row)).map((job) => [job.id, job]));
  for (const id of open) {
    const job = jobs.get(id);
    if (job?.territoryId === undefined || hasEnded(job)) continue;
    if (job.territoryId !== territoryId) {
      const other = polygonArea(unpackPolygon(await objects.get(bulkKeys.area(companyId, id))));
      const criteria = { areas: [area, other], words: [] };
      const { matches } = await findProspects(context, companyId, () => criteria);
      if (matches.total === 0) continue;
    }
    throw new ApiError("conflict", `The job ${id} has not ended and runs over prospects of this territory.`, {
      location: `/api/jobs/${id}`,
    });
  }
}
