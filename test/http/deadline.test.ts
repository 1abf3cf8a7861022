/**
 * Tests a request that waits for a throttled table. It must answer `unavailable` before Lambda stops its function because of the
 * time-out.
 */
import { setTimeout as wait } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
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

test("an endpoint gives up a throttled batch before it answers, and does not call the table afterwards", async () => {
  const throttled = await startThrottledDynamoDb(db.directEndpoint, 1, 0);
  const end = Date.now() + 3_400;
  const handler = endpoint(contract, () => tableOn(throttled, 1).batchPut([{ pk: "throttled", sk: "1" }]));
  try {
    const context = { ...lambdaContext, getRemainingTimeInMillis: () => end - Date.now() };
    const { statusCode, headers, body } = await handler(event(), context);
    expect([statusCode, JSON.parse(body)]).toMatchObject([503, { code: "unavailable" }]);
    expect(headers).toMatchObject({ "Retry-After": "1" });
    const { refusedCalls } = throttled.counts;
    expect(refusedCalls).toBeGreaterThan(1);
    await wait(2_500);
    expect(throttled.counts.refusedCalls).toBe(refusedCalls);
  } finally {
    throttled.stop();
  }
});
