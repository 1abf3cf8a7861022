/** Tests an endpoint whose answer is larger than Lambda's limit. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";

beforeAll(() => {
  // The code needs a table name. It may be any text, because no request reaches the table.
  process.env.TABLE_NAME = "t";
});

const contract = { summary: "", tag: "", allow: "everyone", status: 200, response: z.string() } as const;

test("a too large answer becomes a problem body", async () => {
  const answers = async (length: number) => {
    const handler = command(contract, async () => ({ writes: [], answer: "x".repeat(length) }));
    return handler(proxyEvent({ companyId: "1", userId: "2", rights: "sales" }), lambdaContext);
  };
  const { statusCode, body } = await answers(limits.bufferedAnswerBytes);
  expect([statusCode, JSON.parse(body)]).toMatchObject([500, { code: "internal" }]);
  expect(await answers(limits.bufferedAnswerBytes / 2)).toMatchObject({ statusCode: 200 });
});
