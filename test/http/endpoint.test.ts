/** Tests an endpoint whose answer is larger than Lambda's limit. The endpoint must commit nothing and answer with a problem body. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";

beforeAll(() => {
  // The code needs a table name. It may be any text, because the endpoint rejects each answer before it sends a request to the table.
  process.env.TABLE_NAME = "t";
});

test("an effect with a too large answer fails before any call of the table", async () => {
  const errors: unknown[] = [];
  const contract = { summary: "", tag: "", allow: "everyone", status: 200, response: z.unknown() } as const;
  const handler = endpoint(contract, async ({ context }) => {
    const answer = "x".repeat(limits.bufferedAnswerBytes);
    await context.commit([{ put: { ...keys.company(1), type: "company" } }], answer).catch((error: unknown) => {
      errors.push(error);
      throw error;
    });
    return answer;
  });
  const { statusCode, body } = await handler(
    proxyEvent({ companyId: "1", userId: "2", rights: "sales" }),
    lambdaContext,
  );
  expect([statusCode, JSON.parse(body)]).toMatchObject([500, { code: "internal" }]);
  expect(errors).toMatchObject([{ code: "internal", message: "the answer is too large" }]);
});

test("a too large answer becomes a problem body", async () => {
  const contract = { summary: "", tag: "", allow: "everyone", status: 200, response: z.string() } as const;
  const answers = async (length: number) => {
    const handler = endpoint(contract, async () => "x".repeat(length));
    return handler(proxyEvent({ companyId: "1", userId: "2", rights: "sales" }), lambdaContext);
  };
  const { statusCode, body } = await answers(limits.bufferedAnswerBytes);
  expect([statusCode, JSON.parse(body)]).toMatchObject([500, { code: "internal" }]);
  expect(await answers(limits.bufferedAnswerBytes / 2)).toMatchObject({ statusCode: 200 });
});
