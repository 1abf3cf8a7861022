/** Creates companies with an owner and three sales users for the tests of `GET /api/changes`. */
import { expect } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Clock } from "#shared/clock.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { ApiContext } from "#shared/context.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { createProspect } from "../harness/verbs.ts";
import { addRep, newOwner, warmFunction } from "../harness/warm-function.ts";
import type { Stage, TimedStage } from "./changes-law.ts";
import { feedOf } from "./feed.ts";

const REPS = 3;
let stages = 0;

/** Returns a clock that advances at each reading: a page uses copies of records only if they are later than the last request. */
export function tickingClock(): Clock {
  let nowMs = Date.now();
  return { now: () => (nowMs += 10) };
}

export async function newStage(
  db: FaultyDynamoDb,
  clock: Clock = tickingClock(),
  context: ApiContext = warmFunction(db, clock),
): Promise<Stage> {
  const owner = await newOwner(context);
  const { companyId } = owner;
  const reps: Caller[] = [];
  for (let i = 0; i < REPS; i++) {
    const email = `rep-${stages++}-of-${companyId}@x.test`;
    const userId = await addRep(context, companyId, { email, firstName: "A", lastName: "B" });
    reps.push({ companyId, userId, role: "sales", permissions: [] });
  }
  return { context, owner, reps };
}

/** `contextAt` returns the context of all writes and comparisons. By default, it has the DynamoDB client of the service. */
export async function newTimedStage(
  db: FaultyDynamoDb,
  contextAt: (clock: Clock) => ApiContext = (clock) => warmFunction(db, clock),
): Promise<TimedStage> {
  const time = { nowMs: Date.UTC(2026, 5, 1, 12) };
  const clock: Clock = { now: () => time.nowMs };
  return { ...(await newStage(db, clock, contextAt(clock))), time };
}

/** The tests of costs change every seventh prospect, so that single reads of the rows cost less than one Query for several rows. */
const APART = 7;

/**
 * Creates a company with prospects of the first rep. `scattered` are the ids of some of them, whose rows are read one by one. The feeds of
 * the owner and of the reps have read all records.
 */
export async function newReadCompany(db: FaultyDynamoDb, scattered: number) {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail(), other = expect.fail()] = reps;
  const ids: number[] = [];
  for (let i = 0; i <= (scattered - 1) * APART; i++) {
    const contact = { name: `Maria Garcia ${i}`, phoneNumber: "+1 512 555 0134" };
    ids.push((await createProspect(context, owner, { ...contact, assignedToUserId: rep.userId })).id);
  }
  const all = async () => flush(context, owner.companyId, { least: 1, settleMs: 0 });
  await all();
  const feeds = new Map([owner, rep, other].map((caller) => [caller, feedOf(context, caller, { forgets: true })]));
  const feed = (caller: Caller) => feeds.get(caller) ?? expect.fail();
  for (const { rest } of feeds.values()) await rest();
  return { context, owner, rep, other, scattered: ids.filter((_, i) => i % APART === 0), flush: all, feed };
}
