/** Tests that a bad token does not start the function of a route, and that requests get a server error while the table fails. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import * as z from "zod/mini";
import { contextOn } from "#shared/context.ts";
import { openTable } from "#shared/db/table.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import type { LogLine } from "../../infra/local/options.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { routes } from "../../infra/routes/routes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { plainClient } from "../harness/plain-dynamodb.ts";

const db = faultyDynamoDb();
let service: LocalService;
let token: string;
const lines: LogLine[] = [];
beforeAll(async () => {
  service = await startLocal({
    port: 0,
    webhookUrlPolicy: "local",
    timeScale: 1,
    allowedOrigins: ["https://app.example.com"],
    dynamoDbEndpoint: db.endpoint,
    onLogLine: (line) => lines.push(line),
  });
  const table = openTable(service.outputs.TableName, plainClient(db.directEndpoint));
  const owner = { email: "owner@x.test", firstName: "A", lastName: "B", sub: "owner" };
  await createCompany(contextOn(table), { name: "X", owner });
  token = await service.mint({ sub: owner.sub });
});
afterAll(async () => {
  await service?.stop();
});
beforeEach(() => {
  service.flushAuthorizers();
});

const guarded = routes.filter((route) => !route.public);
const files = new Set(["authorize", ...routes.map(({ file }) => file)]);

/** Returns how often `work` calls the authorizer and each API function. Other functions may run at any time and are not counted. */
async function calledBy(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = service.invocations();
  await work();
  const counts = Object.entries(service.invocations()).map(
    ([file, count]) => [file, count - (before[file] ?? 0)] as const,
  );
  return Object.fromEntries(counts.filter(([file, count]) => count > 0 && files.has(file)));
}

const call = async (method: string, path: string, authorization?: string): Promise<Response> => {
  const headers = authorization === undefined ? {} : { Authorization: authorization };
  const answer = await fetch(`${service.url}${path.replace(/\{\w+\}/g, "1")}`, { method, headers });
  await answer.clone().text();
  return answer;
};

const unsigned = (): string => `${token.split(".").slice(0, 2).join(".")}.`;

test("a missing or malformed token starts no function, on any route", async () => {
  const called = await calledBy(async () => {
    const malformed = ["Bearer", "Basic YTpi", `Token ${token}`, `Bearer ${token} ${token}`, `Bearer ${unsigned()}`];
    for (const [i, { method, path }] of guarded.entries()) {
      // The gateway checks the tokens of all routes in the same way, so each route gets only two of the five malformed headers.
      for (const header of [undefined, malformed[i % 5], malformed[(i + 2) % 5]]) {
        const answer = await call(method, path, header);
        expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      }
    }
  });
  expect(called).toEqual({});
});

const LogEntry = z.object({
  level: z.string(),
  message: z.looseObject({ event: z.optional(z.string()), stackTrace: z.optional(z.array(z.string())) }),
});

async function loggedFor(authorization: string): Promise<z.infer<typeof LogEntry>[]> {
  lines.length = 0;
  expect((await call("GET", "/api/me", authorization)).status).toBe(401);
  return lines
    .filter(({ file, text }) => file === "authorize" && text.includes('"level"'))
    .map(({ text }) => LogEntry.parse(JSON.parse(text)));
}

test("a rejected token is logged with its reason, and is not an error of the function", async () => {
  const entries = await loggedFor(`Bearer ${token.slice(0, -8)}AAAAAAAA`);
  expect(entries).toMatchObject([
    { level: "INFO", message: { event: "unauthorized", reason: "signature not verified" } },
  ]);
});

test("an unknown user is logged without a stack", async () => {
  const entries = await loggedFor(`Bearer ${await service.mint({ sub: "nobody" })}`);
  expect(entries).toMatchObject([
    { level: "INFO", message: { event: "unauthorized", reason: "The user is unknown." } },
    // Lambda writes this second line for each error that a function throws.
    { level: "ERROR", message: { errorMessage: "Unauthorized", stackTrace: ["Error: Unauthorized"] } },
  ]);
});

test("one look-up of the caller serves requests to several routes, and the functions read no row for the caller", async () => {
  const called = await calledBy(async () => {
    const answers = [
      await call("GET", "/api/me", `Bearer ${token}`),
      await call("GET", "/api/territories", `Bearer ${token}`),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map(({ headers }) => headers.get("server-timing"))).toEqual([
      expect.stringContaining("requests;dur=2;"),
      expect.stringContaining("requests;dur=1;"),
    ]);
  });
  expect(called).toEqual({ authorize: 1, me: 1, "territories/list": 1 });
});

test("the gateway caches the refusal of a forged token, but not that of a token whose user may still be created", async () => {
  const refused = (authorization: string) =>
    calledBy(async () => {
      for (let i = 0; i < 3; i++) expect((await call("GET", "/api/me", authorization)).status).toBe(401);
    });
  expect(await refused(`Bearer ${token.slice(0, -4)}AAAA`)).toEqual({ authorize: 1 });
  expect(await refused(`Bearer ${await service.mint({ sub: "nobody" })}`)).toEqual({ authorize: 3 });
});

test("while the table fails, a request gets a server error instead of 401; afterwards it succeeds", async () => {
  db.plan((operation) => (operation === "GetItem" ? serverError : pass));
  const answer = await call("GET", "/api/prospects", `Bearer ${token}`);
  const names = ["content-type", "retry-after", "www-authenticate", "access-control-allow-origin"];
  expect([answer.status, ...names.map((name) => answer.headers.get(name))]).toEqual([
    503,
    "application/problem+json",
    "1",
    null,
    "https://app.example.com",
  ]);
  expect(await answer.json()).toMatchObject({
    code: "unavailable",
    status: 503,
    requestId: answer.headers.get("x-request-id"),
  });
  db.plan(() => pass);
  expect((await call("GET", "/api/prospects", `Bearer ${token}`)).status).toBe(200);
});
