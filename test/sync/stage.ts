/** Creates a company with an owner and three sales users for the tests of `GET /api/changes`. */
import type { Caller } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { Clock } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { newUserWrites } from "#shared/reference/user.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";
import type { Stage, TimedStage } from "./changes-law.ts";

const REPS = 3;
let stages = 0;

/**
 * Returns a clock that advances by 10 ms with each call. A request for changes uses copies of records only if the changes were made some
 * milliseconds after the last request.
 */
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
  const user = StoredUser.parse(await context.table.get(keys.user(companyId, owner.userId)));
  const reps: Caller[] = [];
  for (let i = 0; i < REPS; i++) {
    const [id, sub] = [await context.ids.next(), `rep-${stages++}-of-${companyId}`];
    await context.table.transact(newUserWrites({ ...user, id, sub, email: `${sub}@x.test`, role: "sales" }));
    reps.push({ companyId, userId: id, role: "sales", permissions: [] });
  }
  return { context, owner, reps };
}

/**
 * Creates a company whose clock the test sets. `contextAt` returns the context that makes all writes and comparisons. By default, this
 * context has the same DynamoDB client as the service.
 */
export async function newTimedStage(
  db: FaultyDynamoDb,
  contextAt: (clock: Clock) => ApiContext = (clock) => warmFunction(db, clock),
): Promise<TimedStage> {
  const time = { nowMs: Date.UTC(2026, 5, 1, 12) };
  const clock: Clock = { now: () => time.nowMs };
  return { ...(await newStage(db, clock, contextAt(clock))), time };
}
