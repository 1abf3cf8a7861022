/**
 * Tests when the limiter of a webhook grants a slot (the right to send one request). Also tests that a late write to the row of the limiter
 * does not replace a newer state.
 */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import type { Change } from "#shared/db/expression.ts";
import { limiterKeys } from "#shared/db/webhook-keys.ts";
import {
  acquireSlot,
  BREAKER_FAILURES,
  freeSlot,
  releaseSlot,
  releaseUnsent,
  type SlotClaim,
  slotLimit,
} from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { calledBy } from "../harness/killable.ts";
import { limiterRowOf, newPipeline, putLimiter } from "./delivery-pipeline.ts";

const db = faultyDynamoDb();
const NOW = Date.UTC(2026, 5, 1);
const [LATER, EARLIER] = [iso(NOW + 60_000), iso(NOW - 1)];
const SENDERS = 10;
const [SLOW, QUICK] = [slotLimit(SENDERS, true), slotLimit(SENDERS, false)];
const ID = "dlv_a";
const failed = { isSuccess: false, latencyMs: 1 };

async function limiter(fields: object = {}) {
  const { context, companyId, webhookId } = await newPipeline(db);
  const hook = { companyId, webhookId };
  await putLimiter(db, hook, fields);
  const own: EventContext = { ...context, table: db.direct, clock: { now: () => NOW }, senders: SENDERS };
  const claim = (...ids: string[]): SlotClaim => ({ ...hook, ids });
  const key = limiterKeys.limiter(companyId, webhookId);
  return { key, context: own, claim, row: () => limiterRowOf(db, hook) };
}

const quick = { slow: false, fails: 0, used: 0 };
test.each<[string, object, string[], string]>([
  ["a receiver that is not yet known", {}, [ID], "acquired"],
  ["a slow receiver with a free slot", { slow: true, used: SLOW - 1 }, [ID], "acquired"],
  ["a slow receiver whose slots are in use", { slow: true, used: SLOW }, [ID], "full"],
  ["a quick receiver with a free slot", { ...quick, used: QUICK - 1 }, [ID], "acquired"],
  ["a quick receiver whose slots are in use", { ...quick, used: QUICK }, [ID], "soon"],
  ["a delivery that is being sent", { ...quick, [ID]: `${LATER} x`, used: 1 }, [ID], "inFlight"],
  ["an open breaker", { openUntil: LATER }, [ID], "open"],
  ["the first probe of a receiver", { openUntil: EARLIER, used: 0 }, [ID], "acquired"],
  ["a second probe of a receiver", { openUntil: EARLIER, used: 1 }, [ID], "open"],
  ["a batch for a quick receiver", quick, [ID, "dlv_b"], "acquired"],
  ["a batch whose second delivery is being sent", { ...quick, dlv_b: `${LATER} x` }, [ID, "dlv_b"], "inFlight"],
  ["a batch for a slow receiver", { ...quick, slow: true }, [ID, "dlv_b"], "full"],
  ["a batch for a failing receiver", { ...quick, fails: 1 }, [ID, "dlv_b"], "soon"],
  ["a batch after an open breaker", { ...quick, openUntil: EARLIER }, [ID, "dlv_b"], "open"],
  ["a batch for a receiver whose slots are in use", { ...quick, used: QUICK }, [ID, "dlv_b"], "soon"],
])("%s gets the answer that the state of the limiter allows", async (_, fields, ids, kind) => {
  const { context, claim } = await limiter(fields);
  expect(await acquireSlot(context, claim(...ids))).toMatchObject({ kind });
});

test("a sender whose slot has expired does not free the slot of the next sender", async () => {
  const { context, claim, row } = await limiter();
  const taken = await acquireSlot(context, claim(ID));
  const before = await row();
  expect(await freeSlot(context, claim(ID), `${EARLIER} expired`, {})).toBeUndefined();
  expect([taken.kind, await row()]).toEqual(["acquired", before]);
});

/**
 * Returns a context in which another sender makes the change `meanwhile` just before the second write of the tested function. The
 * function's first write releases the slot.
 */
function interrupted({ key, context }: Awaited<ReturnType<typeof limiter>>, meanwhile: Change): EventContext {
  let writes = 0;
  const table = calledBy(async (work, name) => {
    if (name === "write" && ++writes === 2) await db.direct.write({ update: key, change: meanwhile });
    return work();
  }, context.table);
  return { ...context, table };
}

test("a circuit breaker that another sender opens meanwhile stays open until the time that this sender has set", async () => {
  const at = await limiter({ [ID]: "own", used: 1, fails: BREAKER_FAILURES - 1 });
  const set = { openUntil: LATER, openings: 7 };
  await releaseSlot(interrupted(at, { set }), at.claim(ID), "own", [failed]);
  expect(await at.row()).toMatchObject(set);
});

test("a wait after unsent requests does not shorten the open time of a circuit breaker that another sender has opened meanwhile", async () => {
  const at = await limiter({ [ID]: "own", used: 1 });
  const set = { openUntil: LATER };
  await releaseUnsent(interrupted(at, { set }), at.claim(ID), "own");
  expect(await at.row()).toMatchObject(set);
});

test("the end of a wait after unsent requests does not close a circuit breaker that another sender has opened meanwhile", async () => {
  const at = await limiter({ [ID]: "own", used: 1, unsent: 1, openUntil: EARLIER });
  const change = { set: { openUntil: LATER }, remove: ["unsent"] };
  await releaseSlot(interrupted(at, change), at.claim(ID), "own", [failed]);
  expect(await at.row()).toMatchObject({ openUntil: LATER });
});
