/**
 * Tests that an endpoint answers before Lambda stops it, answers a problem if its answer would be too large, and logs only requests that
 * failed or used many table units.
 */
import { setTimeout as wait } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { count } from "#shared/db/meter.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { ApiError, DeadlinePassed } from "#shared/errors.ts";
import { answerBytes, assertAnswerFits } from "#shared/http/answer.ts";
import { command, endpoint } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { startThrottledDynamoDb, tableOn } from "../harness/throttled-dynamodb.ts";

const db = faultyDynamoDb();
const contract = { summary: "", allow: "everyone", scope: "none", status: 200, response: z.unknown() } as const;
const event = () => proxyEvent({ companyId: "1", userId: "2", rights: "sales" });

test("an endpoint that has answered writes nothing more", async () => {
  const answered = Promise.withResolvers<void>();
  let working: Promise<unknown> = Promise.resolve();
  const handler = endpoint(contract, () => {
    working = answered.promise.then(() => db.sdk.write({ put: { pk: "late", sk: "1" } }));
    return working;
  });
  // The endpoint answers one second before the time-out, so in this test it answers after 50 ms.
  const { statusCode, body } = await handler(event(), { ...lambdaContext, getRemainingTimeInMillis: () => 1_050 });
  expect([statusCode, JSON.parse(body)]).toMatchObject([503, { detail: "The request took too long." }]);
  answered.resolve();
  await expect(working).rejects.toThrow(DeadlinePassed);
  expect(await db.direct.get({ pk: "late", sk: "1" })).toBeUndefined();
});

test("the size of an answer does not count fields that it does not show", async () => {
  const response = z.array(z.object({ id: z.number() }));
  const stored = Array.from({ length: 10 }, (_, id) => ({ id, body: "x".repeat(1_000_000) }));
  const handler = endpoint({ ...contract, response }, async () => stored);
  const { statusCode, body } = await handler(event(), lambdaContext);
  expect([statusCode, JSON.parse(body)]).toEqual([200, stored.map(({ id }) => ({ id }))]);
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
  // The endpoint answers one second before the time-out, and the batch gives up two seconds before the answer. When the table has refused
  // two calls, only 2.9 seconds are left until the time-out, so the batch gives up then, however slow the machine is.
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

const written: string[] = [];
beforeAll(() => {
  // The code needs the name of a table. Any text will do, because no request reaches the table.
  vi.stubEnv("TABLE_NAME", "t");
  vi.stubEnv("LOG_LEVEL", "info");
  vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0);
});
afterAll(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test.each([
  ["a usual request", 499, 200, 0],
  ["a request that used many table units", 500, 200, 1],
  ["a request that failed", 0, 404, 1],
])("%s has its number of lines", async (_, units, status, lines) => {
  const handler = endpoint(contract, async () => {
    await count("read", async () => ({ ConsumedCapacity: { CapacityUnits: units } }));
    if (status === 404) throw new ApiError("not_found", "There is none.");
    return {};
  });
  written.length = 0;
  const { statusCode } = await handler(proxyEvent({ companyId: "7", userId: "8", rights: "sales" }), lambdaContext);
  expect(statusCode).toBe(status);
  const requests = written.map((line) => JSON.parse(line)).filter(({ message }) => message.event === "request");
  expect(requests).toHaveLength(lines);
  for (const { message } of requests)
    expect(message).toMatchObject({ companyId: 7, userId: 8, status, readUnits: units });
});

test("an answer that is too large becomes a problem body", async () => {
  const answers = (length: number) =>
    command(contract, async () => ({ writes: [], answer: "x".repeat(length) }))(event(), lambdaContext);
  const { statusCode, body } = await answers(limits.bufferedAnswerBytes);
  expect([statusCode, JSON.parse(body)]).toMatchObject([500, { code: "internal" }]);
  expect(await answers(limits.bufferedAnswerBytes / 2)).toMatchObject({ statusCode: 200 });
});

const fits = (body: string): boolean => {
  try {
    assertAnswerFits(body);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: "internal" });
    return false;
  }
};

test("the limit counts the whole JSON of the function's answer, with escapes and headers", () => {
  const unit = fc.constantFrom("x", '"', "\\", "\u0001", "é", "漢", "😀");
  const around = fc.integer({ min: -5_000, max: 100_000 });
  fc.assert(
    fc.property(fc.array(unit, { minLength: 1, maxLength: 7 }), around, (units, below) => {
      const text = units.join("");
      const each = Buffer.byteLength(JSON.stringify(JSON.stringify(text))) - 6;
      const body = JSON.stringify(text.repeat(Math.floor((limits.bufferedAnswerBytes - below) / each)));
      const headers = { "Content-Type": "application/json", "X-Filler": "x".repeat(8_192) };
      const payload = Buffer.byteLength(JSON.stringify({ statusCode: 200, headers, body }));
      if (payload > limits.bufferedAnswerBytes) expect(fits(body)).toBe(false);
      if (answerBytes(body) <= limits.bufferedAnswerBytes - 16 * 1024) expect(fits(body)).toBe(true);
    }),
    { numRuns: 10 },
  );
});
