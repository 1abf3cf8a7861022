/**
 * Tests that a POST with an idempotency key and its retries create one record and get one answer while requests to DynamoDB fail, and that
 * a POST whose answer is too large commits nothing.
 */
import { expect, test, vi } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { Clock } from "#shared/clock.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError } from "#shared/errors.ts";
import { once } from "#shared/http/idempotency.ts";
import { readRequest } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import * as prospects from "#shared/prospects/write.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { type Fault, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { keyedPost, proxyEvent } from "../harness/proxy-event.ts";
import { thrownBy } from "../harness/shapes.ts";
import { newOwner } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

async function company(clock: Clock): Promise<{ context: ApiContext; caller: Caller }> {
  return { context: contextOn(db.table, clock), caller: await newOwner(contextOn(db.direct)) };
}

const create = (context: ApiContext, caller: Caller, key: string) =>
  commanded(context, caller, keyedPost(key), (within) => prospects.createProspect(within, caller, { name: "Ada" }));

const total = async (caller: Caller): Promise<number> =>
  (await listProspects(contextOn(db.direct), caller, { page: 1, pageSize: 50 })).total;

const faults: Record<string, Fault> = { "a server error": serverError, "a lost reply": { kind: "lose reply" } };

test.each(Object.keys(faults))(
  "%s at any call of the first request leads to one record and one answer",
  async (name) => {
    const fault = faults[name] ?? pass;
    const undisturbed = await company({ now: () => Date.now() });
    db.plan(() => pass);
    await create(undisturbed.context, undisturbed.caller, "count");
    const calls = [...db.calls];
    for (let at = 1; at <= calls.length; at++) {
      let now = Date.now();
      const { context, caller } = await company({ now: () => now });
      // In the first POST, the request to DynamoDB with the number `at` fails. All later requests of the same operation fail too, because
      // the SDK repeats a failed request.
      let isFirst = true;
      db.plan((operation, number) => (isFirst && number >= at && operation === calls[at - 1] ? fault : pass));
      const first = await create(context, caller, "key").catch(() => undefined);
      isFirst = false;
      // After 31 seconds, the service assumes that the first POST was killed. A retry may then take over the idempotency key.
      now += 31_000;
      const second = await create(context, caller, "key");
      const third = await create(context, caller, "key");
      const place = `${name} at ${at} (${calls[at - 1]})`;
      expect(await total(caller), place).toBe(1);
      expect(third, place).toEqual({ value: second.value, replayed: true });
      if (first !== undefined) expect(second.value, place).toEqual(JSON.parse(JSON.stringify(first.value)));
    }
  },
);

test("Retry-After grows with the time since a killed request began, until a retry takes over the request's key", async () => {
  const start = Date.now();
  let now = start;
  const { context, caller } = await company({ now: () => now });
  const { promise: never } = Promise.withResolvers<never>();
  const claimed = Promise.withResolvers<void>();
  void once(context, caller, keyedPost("killed"), {}, () => {
    claimed.resolve();
    return never;
  });
  await claimed.promise;
  const waits: number[] = [];
  for (let wait = 0; ; now += 1_000 * wait) {
    const refused = await thrownBy(create(context, caller, "killed"));
    if (refused === undefined) break;
    expect(refused).toMatchObject({
      code: "request_in_progress",
      headers: { "Retry-After": expect.stringMatching(/^[1-9]\d?$/) },
    });
    wait = refused instanceof ApiError ? Number(refused.headers["Retry-After"]) : Number.NaN;
    waits.push(wait);
  }
  expect(waits).toEqual([1, 1, 2, 4, 8, 14]);
  expect(now - start).toBe(30_000);
  expect(await total(caller)).toBe(1);
});

test("a key that cannot be released is logged", async () => {
  const { context, caller } = await company({ now: () => Date.now() });
  const lines: string[] = [];
  vi.stubEnv("LOG_LEVEL", "warn");
  const stderr = vi.spyOn(process.stderr, "write").mockImplementation((text) => lines.push(String(text)) > 0);
  const failed = once(context, caller, keyedPost("stuck"), {}, async () => {
    db.plan(() => serverError);
    throw new ApiError("not_found", "There is no such prospect.");
  });
  await expect(failed).rejects.toMatchObject({ code: "not_found" });
  stderr.mockRestore();
  vi.unstubAllEnvs();
  const logged = lines.filter((line) => line.includes("idempotency key not released"));
  expect(logged.map((line) => JSON.parse(line))).toMatchObject([
    { level: "WARN", message: { error: "InternalServerError" } },
  ]);
});

test.each([undefined, "key"])(
  "no effect is committed if its answer exceeds the limit, with the idempotency key %s",
  async (key) => {
    const context = contextOn(db.direct);
    const request = key === undefined ? readRequest(proxyEvent({})) : keyedPost(key);
    const companyId = key === undefined ? 2 ** 40 : 2 ** 41;
    const company = keys.company(companyId);
    const writes = [{ put: { ...company, type: "company", name: "X" } }];
    const caller = { companyId, userId: 2, role: "owner", permissions: [] } as const;
    const send = (answer: unknown) =>
      once(context, caller, request, {}, async (commit) => {
        await commit({ writes, answer });
        return answer;
      });
    // A quotation mark needs two bytes in the JSON of the body. Lambda escapes this JSON again, so the mark then needs four.
    const tooLarge = send({ name: '"'.repeat(limits.bufferedAnswerBytes / 4) });
    await expect(tooLarge).rejects.toMatchObject({ code: "internal" });
    expect(await context.table.get(company)).toBeUndefined();
    await send({ name: "X" });
    expect(await context.table.get(company)).toMatchObject({ name: "X" });
  },
);
