/**
 * Tests a request that waits for a throttled table. The function must answer `unavailable` before it reaches its time-out and Lambda stops
 * it.
 */
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { stoppedAt } from "#shared/deadline.ts";
import { DeadlinePassed } from "#shared/errors.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { tableOn } from "../db/throttled-import.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { startThrottledDynamoDb } from "../harness/throttled-dynamodb.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.TABLE_NAME = "t";
});

const contract = { summary: "", tag: "", allow: "everyone", status: 200, response: z.unknown() } as const;
const event = () => proxyEvent({ companyId: "1", userId: "2", rights: "sales" });

test("after its answer, an endpoint writes nothing more", async () => {
  const answered = Promise.withResolvers<void>();
  let working: Promise<unknown> = Promise.resolve();
  const handler = endpoint(contract, () => {
    working = answered.promise.then(() => db.sdk.write({ put: { pk: "late", sk: "1" } }));
    return working;
  });
  // The endpoint answers one second before the time-out, so in this test it answers after 50 ms.
  const { statusCode, body } = await handler(event(), {
    ...lambdaContext,
    getRemainingTimeInMillis: () => 1_050,
  });
  expect([statusCode, JSON.parse(body)]).toMatchObject([503, { detail: "The request took too long." }]);
  answered.resolve();
  await expect(working).rejects.toThrow(DeadlinePassed);
  expect(await db.direct.get({ pk: "late", sk: "1" })).toBeUndefined();
});

test("at the deadline, a running call of the table is aborted and its retries do not follow", async () => {
  db.plan(() => ({ kind: "hang" }));
  const reading = stoppedAt(
    () => 50,
    () => db.sdk.get({ pk: "x", sk: "1" }),
  );
  await expect(reading).rejects.toThrow(DeadlinePassed);
  expect(db.calls.length).toBeLessThanOrEqual(1);
});

test("an endpoint gives up a throttled batch before it answers, and does not call the table afterwards", async () => {
  const throttled = await startThrottledDynamoDb(db.directEndpoint, 1, 0);
  // The endpoint answers one second before the time-out, and the batch gives up two seconds earlier. When the table has refused two calls,
  // only 2.9 seconds are left until the time-out, so the batch gives up then, however slow the machine is.
  const remainingMs = (): number => (throttled.counts.refusedCalls < 2 ? 60_000 : 2_900);
  const handler = endpoint(contract, () => tableOn(throttled, 1).batchPut([{ pk: "throttled", sk: "1" }]));
  try {
    const context = { ...lambdaContext, getRemainingTimeInMillis: remainingMs };
    const { statusCode, headers, body } = await handler(event(), context);
    expect([statusCode, JSON.parse(body)]).toMatchObject([503, { code: "unavailable" }]);
    expect(headers).toMatchObject({ "Retry-After": "1" });
    const { refusedCalls } = throttled.counts;
    expect(refusedCalls).toBe(2);
    await wait(2_500);
    expect(throttled.counts.refusedCalls).toBe(refusedCalls);
  } finally {
    throttled.stop();
  }
});
