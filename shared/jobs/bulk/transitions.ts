/** Returns the writes that pause or end a bulk job. The same transaction must also change the company's queue. */
import { iso } from "#shared/clock.ts";
import { equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { dueNow } from "#shared/jobs/bulk/queue.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import * as limits from "#shared/limits.ts";

/** If nobody resumes the job for a month, the sweeper finds it by `dueAt`, and the job is cancelled. */
export function paused({ companyId, id, version }: StoredBulk, nowMs: number): Write {
  const set: Partial<StoredBulk> = {
    state: "paused",
    isOpen: false,
    isAdmitted: false,
    runsUntil: 0,
    updatedAt: iso(nowMs),
  };
  const change = { set: { ...set, ...dueNow(nowMs + limits.bulkKeptMs) }, remove: ["wanted"], add: { version: 1 } };
  return { update: keys.bulkJob(companyId, id), change, when: equals("version", version) };
}

/** Returns the writes that end a job. DynamoDB deletes its rows at `expiresAt`. The first write requires an unchanged job. */
export function ended(
  { companyId, id, version, createdAt }: StoredBulk,
  how: Pick<StoredBulk, "state" | "failure">,
  nowMs: number,
): Write[] {
  const expiresAt = Math.ceil((nowMs + limits.bulkKeptMs) / 1_000);
  const at = iso(nowMs);
  const set: Partial<StoredBulk> = { ...how, isOpen: false, isAdmitted: false, endedAt: at, updatedAt: at, expiresAt };
  const change = { set, remove: ["dueShard", "dueAt", "wanted"], add: { version: 1 } };
  return [
    { update: keys.bulkJob(companyId, id), change, when: equals("version", version) },
    { update: keys.bulkJobEntry(companyId, createdAt, id), change: { set: { expiresAt } } },
  ];
}
