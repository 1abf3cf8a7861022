/** Rows, changes and registrations with which the tests of deliveries begin, and a context that makes no HTTP request. */
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Exchange } from "#shared/outbound/post.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { prospectRow } from "../harness/prospect-row.ts";

export const START = Date.UTC(2026, 5, 1);
/** The exchange with a receiver that accepts a delivery. */
export const accepted: Exchange = { status: 200, error: null, answer: "", retryAfter: undefined, latencyMs: 1 };

export const automatic = (event: string, delayMinutes = 0) => ({
  event,
  filter: null,
  delayMinutes,
  triggerMode: "automatic" as const,
  manualTriggerButtonText: null,
});

export const manual = (event: string, delayMinutes = 0) => ({
  ...automatic(event, delayMinutes),
  triggerMode: "manual" as const,
  manualTriggerButtonText: "Send",
});

/** Allows webhook URLs with loopback addresses. */
export function allowLoopback(): void {
  process.env.WEBHOOK_URL_POLICY = "local";
}

const never = () => Promise.reject(new Error("the tested function must not call this"));

/** The context of a function that only uses the table and sends queue messages. */
export const quietContext = (
  table: EventContext["table"],
  clock: EventContext["clock"],
  send: EventContext["queue"]["send"],
): EventContext => ({
  ...{ table, clock, timeScale: 1, senders: 10, secrets: { open: never }, wait: never },
  ...{ queue: { returnIn: never, send }, post: never, savePoisonRecord: never },
});

export const createdProspect = (companyId: number, id: number): StoredProspect =>
  prospectRow({ companyId, id, name: "Ada", source: "api", createdAt: iso(START), updatedAt: iso(START) });

export const createdItem = (companyId: number, id: number): Item => prospectItem(createdProspect(companyId, id));

export function creation(companyId: number, id: number, atMs = START): RowChange {
  const dated = { createdAt: iso(atMs), updatedAt: iso(atMs) };
  return { before: undefined, after: prospectItem({ ...createdProspect(companyId, id), ...dated }) };
}

/**
 * Returns the change of a prospect's name by a bulk job. `marked` is the version of the row that the job has written. If it differs from
 * `version`, somebody has changed the row again after the job.
 */
export function bulkChange(
  companyId: number,
  id: number,
  {
    version = 2,
    marked = version,
    updatedAt = iso(START),
  }: { version?: number; marked?: number; updatedAt?: string } = {},
): RowChange {
  const before = { ...createdProspect(companyId, id), version: version - 1 };
  const bulk = { jobId: 77, events: "each" as const, version: marked, before: {}, after: {} };
  const after = { ...before, name: `name ${version}`, version, updatedAt, bulk };
  return { before: prospectItem(before), after: prospectItem(after) };
}
