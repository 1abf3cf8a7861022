/** Tests an import within one request that runs out of time: none of its rows appears later, and a retry imports each row once. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { UNKNOWN_OUTCOME } from "#shared/jobs/import/import.ts";
import { listImports } from "#shared/jobs/import/requests.ts";
import { ImportQuery } from "#shared/jobs/import/schema.ts";
import type { ImportOptions } from "#shared/jobs/import/stored.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { type Fault, pass, serverError } from "../harness/faulty-dynamodb.ts";
import { checkIndex } from "../harness/index-oracle.ts";
import { killPointsOf } from "../harness/kills.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { importFile } from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, harness } = jobTests();
beforeAll(() => {
  process.env.TABLE_NAME = "t";
});

const COUNT = 20;
const rows = Array.from({ length: COUNT }, (_, i) => `n${i},m${i}@x.test,39,-105,note`);
const file = Buffer.from(["name,email,lat,lng,notes", ...rows].join("\n"));
const contract = {
  summary: "",
  allow: "everyone",
  scope: "none",
  status: 200,
  response: z.unknown(),
  unknownOutcome: UNKNOWN_OUTCOME,
} as const;

/** Milliseconds until Lambda stops the function. Each test sets them, so that no test depends on the machine's speed. */
const left = { ms: 0 };
const PLENTY = 60_000;
/** Milliseconds that suffice to mark the import as failed, but not to write rows. */
const LATE = 2_500;
const OVER = 0;

const Problem = z.object({ detail: z.string() });

/** Calls the import endpoint. Its calls to the table go through a proxy, which makes the planned faults. */
async function posted({ caller }: Company, options: ImportOptions = {}) {
  left.ms = PLENTY;
  const handler = endpoint(contract, () => importFile(harness.faulty(), caller, file, options));
  const context = { ...lambdaContext, getRemainingTimeInMillis: () => left.ms };
  const event = proxyEvent({ companyId: `${caller.companyId}`, userId: `${caller.userId}`, rights: "owner" });
  const { statusCode, body } = await handler(event, context);
  const problem = z.safeParse(Problem, JSON.parse(body));
  return { status: statusCode, detail: problem.success ? problem.data.detail : "" };
}

const visible = async ({ caller }: Company): Promise<string[]> => {
  const { items } = await listProspects(harness.sound(), caller, ListQuery.parse({ pageSize: "500" }));
  return items.map(({ name }) => name ?? "");
};

async function expectOnce(company: Company): Promise<void> {
  const names = await visible(company);
  expect(names).toHaveLength(COUNT);
  expect(new Set(names).size).toBe(COUNT);
  expect(await checkIndex(harness.sound().table, company.caller.companyId)).toEqual([]);
}

async function callsOfImport(): Promise<string[]> {
  const company = await newCompany(harness.sound());
  db.plan(() => pass);
  expect(await posted(company)).toMatchObject({ status: 200 });
  return [...db.calls];
}

/**
 * Plans that only `ms` milliseconds are left when the table gets call number `last`. `then` is the fault of this call, and `later` is the
 * fault of all later calls.
 */
const timeEndsAt = (last: number, ms: number, then: Fault = pass, later: Fault = pass): void =>
  db.plan((_operation, number) => {
    if (number === last) left.ms = ms;
    return number < last ? pass : number === last ? then : later;
  });

test("whenever the time ends, an import shows no row, and each row once after a repeat", {
  tags: "sized",
}, async () => {
  const all = (await callsOfImport()).length;
  expect(all).toBeGreaterThan(8);
  for (const last of killPointsOf(all, 0)) {
    const company = await newCompany(harness.sound());
    timeEndsAt(last, LATE);
    const { status, detail } = await posted(company);
    const { length } = db.calls;
    // If the time ends at the import's last call to the table, the import succeeds, because this call completes it.
    expect(status, `the time ends at call ${last}`).toBe(last === all ? 200 : 503);
    expect(await visible(company)).toHaveLength(last === all ? COUNT : 0);
    expect(db.calls).toHaveLength(length);
    if (status === 200) continue;
    expect(detail).toContain("Nothing was imported");
    db.plan(() => pass);
    expect(await posted(company)).toMatchObject({ status: 200 });
    await expectOnce(company);
  }
});

test("an import that still waits for the table when the request times out shows no row later", async () => {
  const all = await callsOfImport();
  for (const held of [1, all.indexOf("BatchWriteItem") + 1]) {
    const company = await newCompany(harness.sound());
    const answered = Promise.withResolvers<void>();
    db.plan((_operation, number) => (number === held ? { kind: "early", meanwhile: () => answered.promise } : pass));
    let importing: Promise<unknown> = Promise.resolve();
    const handler = endpoint(contract, () => {
      importing = importFile(harness.faulty(), company.caller, file);
      return importing;
    });
    const { companyId, userId } = company.caller;
    const event = proxyEvent({ companyId: `${companyId}`, userId: `${userId}`, rights: "owner" });
    // The function has 4.4 s here. The endpoint answers one second before this time ends, and the import stops three seconds before the
    // endpoint answers. The import therefore has 0.4 s.
    const end = Date.now() + 4_400;
    const context = { ...lambdaContext, getRemainingTimeInMillis: () => end - Date.now() };
    expect(await handler(event, context)).toMatchObject({ statusCode: 503 });
    answered.resolve();
    await importing.catch(() => undefined);
    expect(await visible(company)).toEqual([]);
  }
});

test("a commit that reaches the table after the answer has no effect", async () => {
  const company = await newCompany(harness.sound());
  let transactions = 0;
  let commit = "";
  db.plan((operation, _number, body) => {
    if (operation !== "TransactWriteItems" || ++transactions === 1) return pass;
    commit = JSON.stringify(body);
    return serverError;
  });
  expect(await posted(company)).toMatchObject({ status: 503 });
  const headers = {
    "content-type": "application/x-amz-json-1.0",
    "x-amz-target": "DynamoDB_20120810.TransactWriteItems",
    authorization:
      "AWS4-HMAC-SHA256 Credential=local/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
    "x-amz-date": "20300101T000000Z",
  };
  const reply = await fetch(db.directEndpoint, { method: "POST", headers, body: commit });
  expect(await reply.text()).toContain("TransactionCanceledException");
  expect(await visible(company)).toEqual([]);
  db.plan(() => pass);
  expect(await posted(company)).toMatchObject({ status: 200 });
  await expectOnce(company);
});

test.each([
  ["executed", { kind: "lose reply" }, COUNT],
  ["not executed", serverError, 0],
] satisfies [string, Fault, number][])(
  "if the commit is %s but has no answer, the problem says that the outcome is unknown and names the list of imports",
  async (_, fault, shown) => {
    const all = (await callsOfImport()).length;
    const company = await newCompany(harness.sound());
    timeEndsAt(all, OVER, fault, serverError);
    const { status, detail } = await posted(company);
    expect([status, detail]).toEqual([503, UNKNOWN_OUTCOME]);
    expect(detail).toContain("Idempotency-Key");
    expect(detail).toContain("GET /api/prospects/imports");
    expect(await visible(company)).toHaveLength(shown);
    const { items } = await listImports(harness.sound(), company.caller, ImportQuery.parse({}));
    expect(items).toMatchObject([{ state: shown > 0 ? "completed" : "running", imported: shown }]);
  },
);

test("the search for matching prospects ends with the time of the request", async () => {
  const company = await newCompany(harness.sound());
  await importFile(harness.sound(), company.caller, file);
  const options = { matchBy: "emailAddress", onMatch: "update" } as const;
  let last = 0;
  db.plan((operation, number, body) => {
    if (operation !== "Query" || !JSON.stringify(body).includes("#P#")) return pass;
    last = number;
    left.ms = LATE;
    return pass;
  });
  expect(await posted(company, options)).toMatchObject({ status: 503 });
  expect(last).toBeGreaterThan(0);
  expect(db.calls).toHaveLength(last);
});
