/** Tests that repeated and concurrent requests with the same `Idempotency-Key` have one effect and get the same answer. */
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { type Answer, at, type Client, json } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const post = (client: Client, path: string, key: string, body: unknown): Promise<Answer> =>
  client.send("POST", path, { headers: { ...json, "Idempotency-Key": key }, body: JSON.stringify(body) });
const isReplay = (answer: Answer): boolean => answer.headers.get("idempotency-replayed") === "true";
const named = async (name: string): Promise<number> => {
  const { items } = dataOf(await as.admin.GET("/api/prospects", { params: { query: { pageSize: 500 } } }));
  return items.filter((item) => item.name === name).length;
};

test("a repeated create returns the first answer byte for byte and creates no record", async () => {
  const [key, name] = [uniqueName(), uniqueName()];
  const first = await post(as.admin, "/api/prospects", key, { name });
  const again = await post(as.admin, "/api/prospects", `"${key}"`, { name });
  expect(bodyOf(again, 201, z.unknown())).toEqual(bodyOf(first, 201, z.unknown()));
  expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
  expect(again.headers.get("location")).toBe(first.headers.get("location"));
  expect(await named(name)).toBe(1);
});

test("twenty concurrent requests have one effect; each gets the same answer or a 409 with Retry-After", async () => {
  const [key, name] = [uniqueName(), uniqueName()];
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(as.admin, "/api/prospects", key, { name })));
  const made = answers.filter(({ status }) => status === 201);
  for (const waiting of answers.filter(({ status }) => status !== 201)) {
    problemOf(waiting, 409, "request_in_progress");
    expect(waiting.headers.get("retry-after")).toMatch(/^[1-9]\d?$/);
  }
  expect(new Set(made.map(({ text }) => text)).size).toBe(1);
  expect(made.filter((answer) => !isReplay(answer))).toHaveLength(1);
  expect(await named(name)).toBe(1);
});

test("the replayed creation of a webhook contains the webhook's secret, and no other answer does", async () => {
  const body = { name: uniqueName(), url: "https://example.com/" };
  const key = uniqueName();
  const Made = z.object({ id: z.number(), secretKey: z.string() });
  const first = bodyOf(await post(as.admin, "/api/webhooks", key, body), 201, Made);
  expect(bodyOf(await post(as.admin, "/api/webhooks", key, body), 201, Made)).toEqual(first);
  await as.admin.DELETE("/api/webhooks/{id}", at(first.id));
});

describe("a key is scoped to one caller, one route and one request", () => {
  test("another body or path is a mismatch; another caller or route is another key", async () => {
    const key = uniqueName();
    bodyOf(await post(as.admin, "/api/prospects", key, { name: "a" }), 201, Identified);
    problemOf(await post(as.admin, "/api/prospects", key, { name: "b" }), 422, "idempotency_mismatch");
    problemOf(await post(as.admin, "/api/prospects?_x=1", key, { name: "a" }), 422, "idempotency_mismatch");
    const other = await post(as.owner, "/api/prospects", key, { name: "a" });
    expect([other.status, isReplay(other)]).toEqual([201, false]);
    const foreign = await post(as.otherOwner, "/api/prospects", key, { name: "b" });
    expect([foreign.status, isReplay(foreign)]).toEqual([201, false]);
    await as.otherOwner.DELETE("/api/prospects/{id}", at(bodyOf(foreign, 201, Identified).id));
    const status = await post(as.admin, "/api/statuses", key, { value: uniqueName() });
    expect([status.status, isReplay(status)]).toEqual([201, false]);
  });

  test("a failed request releases its key, so that the client can correct and repeat it", async () => {
    const key = uniqueName();
    problemOf(await post(as.admin, "/api/prospects", key, { lat: 91 }), 400, "validation_failed");
    problemOf(await post(as.admin, "/api/prospects", key, { addressId: 1 }), 400, "validation_failed");
    expect((await post(as.admin, "/api/prospects", key, { lat: 90 })).status).toBe(201);
  });

  test.each(["", " ", '""', "x".repeat(256)])("%j is no key", async (key) => {
    const [fault] = problemOf(await post(as.admin, "/api/prospects", key, {}), 400, "validation_failed");
    expect(fault?.parameter).toBe("Idempotency-Key");
  });
});
