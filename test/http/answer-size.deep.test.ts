/** Tests that an endpoint rejects an answer above Lambda's limit, and commits nothing. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { answerBytes, assertAnswerFits } from "#shared/http/answer.ts";
import { once } from "#shared/http/idempotency.ts";
import { readRequest } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { keyedPost, proxyEvent } from "../harness/proxy-event.ts";

const db = faultyDynamoDb();

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

test.each([undefined, "key"])(
  "no effect is committed if its answer exceeds the limit, with the idempotency key %s",
  async (key) => {
    const context = contextOn(db.direct);
    const request = key === undefined ? readRequest(proxyEvent({})) : keyedPost(key);
    const company = keys.company(key === undefined ? 1 : 2);
    const writes = [{ put: { ...company, type: "company", name: "X" } }];
    const caller = { companyId: 1, userId: 2, role: "owner", permissions: [] } as const;
    const send = (answer: unknown) =>
      once(context, caller, request, {}, async (commit) => {
        await commit({ writes, answer });
        return answer;
      });
    // A quotation mark needs two bytes in the answer's JSON, and four in the JSON string into which Lambda puts this JSON.
    const tooLarge = send({ name: '"'.repeat(limits.bufferedAnswerBytes / 4) });
    await expect(tooLarge).rejects.toMatchObject({ code: "internal" });
    expect(await context.table.get(company)).toBeUndefined();
    await send({ name: "X" });
    expect(await context.table.get(company)).toMatchObject({ name: "X" });
  },
);
