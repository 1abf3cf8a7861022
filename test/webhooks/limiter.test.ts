/** Tests when the limiter of a webhook grants a slot. Late writes to its row are in late-writes.test.ts. */
import { expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import type { EventContext } from "#shared/context.ts";
import { acquireSlot, freeSlot, type SlotClaim, slotLimit } from "#shared/webhooks/limiter/limiter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newPipeline } from "./pipeline.ts";
import { limiterRowOf, putLimiter } from "./stored-deliveries.ts";

const db = faultyDynamoDb();
const NOW = Date.UTC(2026, 5, 1);
const [LATER, EARLIER] = [iso(NOW + 60_000), iso(NOW - 1)];
const SENDERS = 10;
const [SLOW, QUICK] = [slotLimit(SENDERS, true), slotLimit(SENDERS, false)];
const ID = "dlv_a";

async function limiter(fields: object = {}) {
  const { context, companyId, webhookId } = await newPipeline(db);
  const hook = { companyId, webhookId };
  await putLimiter(db, hook, fields);
  const own: EventContext = { ...context, table: db.direct, clock: { now: () => NOW }, senders: SENDERS };
  const claim = (...ids: string[]): SlotClaim => ({ ...hook, ids });
  return { context: own, claim, row: () => limiterRowOf(db, hook) };
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
