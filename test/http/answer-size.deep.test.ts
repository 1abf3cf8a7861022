/** Tests that an endpoint with a transaction rejects an answer above Lambda's limit before it commits the transaction. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { answerBytes, assertAnswerFits, rejectingLargeAnswers } from "#shared/http/answer.ts";
import * as limits from "#shared/limits.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";

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

test("no effect is committed if its answer exceeds the limit", async () => {
  const context = rejectingLargeAnswers(contextOn(db.direct));
  const row = { ...keys.company(1), type: "company", name: "X" };
  const writes = [{ put: row }];
  // A quotation mark needs two bytes in the answer's JSON. Lambda puts this JSON into a JSON string, where it needs four bytes.
  const answer = { name: '"'.repeat(limits.bufferedAnswerBytes / 4) };
  await expect(context.commit(writes, answer)).rejects.toMatchObject({ code: "internal" });
  expect(await context.table.get(keys.company(1))).toBeUndefined();
  await context.commit(writes, { name: "X" });
  expect(await context.table.get(keys.company(1))).toMatchObject({ name: "X" });
});
