/** Returns the writes that pause, resume or end a bulk job. The same transaction must also change the company's queue. */
import { iso } from "#shared/clock.ts";
import { type Condition, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { due, notDue } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";

/** If nobody resumes the job for a month, the sweeper finds it by `dueAt`, and the job is cancelled. */
export function paused({ companyId, id }: StoredBulk, when: Condition, nowMs: number): Write {
  const set: Partial<StoredBulk> = { state: "paused", isOpen: false, isAdmitted: false, updatedAt: iso(nowMs) };
  const change = { set: { ...set, ...due(nowMs + limits.bulkKeptMs) }, remove: ["wanted", "runsUntil"] };
  return { update: keys.bulkJob(companyId, id), change, when };
}

export function resumed({ companyId, id }: StoredBulk, isAdmitted: boolean, nowMs: number): Write {
  const set: Partial<StoredBulk> = { state: "queued", isAdmitted, updatedAt: iso(nowMs) };
  const change = isAdmitted ? { set: { ...set, ...due(nowMs) } } : { set, remove: notDue };
  return { update: keys.bulkJob(companyId, id), change, when: equals("state", "paused") };
}

/** DynamoDB deletes the rows of the job at `expiresAt`. */
export function ended(
  { companyId, id, createdAt }: StoredBulk,
  how: Pick<StoredBulk, "state" | "failure">,
  when: Condition,
  nowMs: number,
): Write[] {
  const expiresAt = Math.ceil((nowMs + limits.bulkKeptMs) / 1_000);
  const at = iso(nowMs);
  const set: Partial<StoredBulk> = { ...how, isOpen: false, isAdmitted: false, endedAt: at, updatedAt: at, expiresAt };
  const change = { set, remove: [...notDue, "wanted", "runsUntil"] };
  return [
    { update: keys.bulkJob(companyId, id), change, when },
    { update: keys.bulkJobEntry(companyId, createdAt, id), change: { set: { expiresAt } } },
  ];
}
