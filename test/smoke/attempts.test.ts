/** Tests how the smoke test of a deployment reads its deliveries from the log, and how it calls the API. */
import { createHash, createHmac } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import * as limits from "#shared/limits.ts";
import { type Api, apiAt } from "#shared/smoke/api.ts";
import { delivered as readDelivered } from "#shared/smoke/attempts.ts";
import { handler } from "../../functions/health-webhooks.ts";
import { proxyEvent } from "../harness/proxy-event.ts";

afterEach(() => vi.unstubAllGlobals());

const webhook = { id: 7, secretKey: "a secret of this test" };
const createdAt = "2026-11-29T10:00:00.000Z";
const data = { prospect: { id: 1 }, newStatus: { value: "Sold" }, statusHistoryId: 3 };
const body = JSON.stringify({ id: "dlv_1", event: "prospect.status_changed", createdAt, data });
const receipt = {
  signature: createHmac("sha256", webhook.secretKey).update(body).digest("hex"),
  sha256: createHash("sha256").update(body).digest("hex"),
};
const made = { status: 200, error: null, answer: JSON.stringify(receipt), startedAt: createdAt, latencyMs: 40 };

/** Simulates an API. Each page of its delivery log has one delivery, and each delivery has this attempt. */
const logOf = (ids: readonly string[], attempt: object): Api => {
  const answers = (path: string): unknown => {
    const [, id] = /deliveries\/(\w+)$/.exec(path) ?? [];
    if (id !== undefined) return { id, createdAt, body, attempts: [attempt] };
    if (path.includes("status=waiting") === ("answer" in attempt && attempt.answer !== "")) {
      return { items: [], nextCursor: null };
    }
    const [, cursor = "0"] = /cursor=(\d+)/.exec(path) ?? [];
    const next = Number(cursor) + 1;
    return { items: [{ id: ids[next - 1] }], nextCursor: next < ids.length ? String(next) : null };
  };
  return async (_, path) => ({ status: 200, body: answers(path) });
};

/** Calls `readDelivered` on a simulated log that has deliveries with these ids. Throws if fewer than `count` have succeeded. */
const delivered = (count: number, ids: readonly string[], attempt: object, prospects = new Set([1])) =>
  readDelivered(logOf(ids, attempt), { webhook, prospects, count, waitMs: 0 });

test("the deliveries on all pages of the log are read, each with the time from the event to the answer", async () => {
  const read = await delivered(3, ["a", "b", "c"], made);
  expect(read.map(({ id, delayMs }) => [id, delayMs])).toEqual([
    ["a", 40],
    ["b", 40],
    ["c", 40],
  ]);
});

test.each([
  [{ ...receipt, signature: null }, "the receiver got no signature"],
  [{ ...receipt, signature: "0".repeat(64) }, "the signature of a delivery is not valid"],
  [{ ...receipt, sha256: "0".repeat(64) }, "another body has arrived"],
  ["<html>", "the receiver does not answer as POST /health/webhooks does"],
])("the answer %j of the receiver fails the test", async (answer, message) => {
  const attempt = { ...made, answer: typeof answer === "string" ? answer : JSON.stringify(answer) };
  await expect(delivered(1, ["a"], attempt)).rejects.toThrow(message);
});

test("a delivery about a prospect that the test did not create does not count", async () => {
  const read = delivered(1, ["a"], made, new Set([2]));
  await expect(read).rejects.toThrow("only 0 of 1 webhooks were delivered");
});

test("a webhook that is not delivered fails the test with the reason", async () => {
  const attempt = { ...made, status: 404, answer: "" };
  await expect(delivered(2, ["a"], attempt)).rejects.toThrow(
    "only 0 of 2 webhooks were delivered within 0 ms: the receiver answered 404",
  );
});

test("a request that the throttle refuses is sent again when the answer permits it", async () => {
  const statuses = [429, 429, 200];
  vi.stubGlobal("fetch", async () =>
    Response.json({ left: statuses.length }, { status: statuses.shift() ?? 500, headers: { "Retry-After": "0" } }),
  );
  expect(await apiAt("https://api.test", "token")("GET", "/api/me")).toEqual({ status: 200, body: { left: 1 } });
});

test("the receiver of a deployment answers a body of the largest size with its digest, and refuses a larger one", async () => {
  const answerTo = async (size: number) => {
    const event = { ...proxyEvent({}), httpMethod: "POST", body: "x".repeat(size), isBase64Encoded: false };
    const { statusCode, body: text } = await handler(event);
    return [statusCode, JSON.parse(text)];
  };
  const sha256 = createHash("sha256").update("x".repeat(limits.bodyBytes)).digest("hex");
  expect(await answerTo(limits.bodyBytes)).toEqual([200, { signature: null, sha256 }]);
  expect(await answerTo(limits.bodyBytes + 1)).toMatchObject([413, { code: "payload_too_large" }]);
});
