/** Tests which requests an endpoint logs. It need not log every request, because the access log of API Gateway does. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { count } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { endpoint } from "#shared/http/endpoint.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";

const contract = { summary: "", tag: "", allow: "everyone", status: 200, response: z.unknown() } as const;
const written: string[] = [];
beforeAll(() => {
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
