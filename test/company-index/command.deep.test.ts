/** Tests the output and the exit codes of `npm run index`, which runs as a separate process on a real table. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "#shared/clock.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { TABLE } from "../harness/faulty-dynamodb.ts";
import { indexInHand, pieceOf } from "./damage.ts";
import { IndexedCompany } from "./indexed-company.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

const db = faultyDynamoDb();
/** Simulates the endpoint of the local service that tells the command the address of the table. */
let outputs: Server;
beforeAll(async () => {
  outputs = createServer((_, response) => {
    response.end(
      JSON.stringify({ TableName: TABLE, DynamoDbEndpoint: db.directEndpoint, SqsEndpoint: "http://127.0.0.1:1" }),
    );
  }).listen(0, "127.0.0.1");
  await once(outputs, "listening");
});
afterAll(async () => {
  outputs.closeAllConnections();
  outputs.close();
});

const target = expect.stringMatching(/^target: local service at http:\S+\n$/);

async function run(...args: string[]) {
  const address = outputs.address();
  const PORT = String(typeof address === "object" ? address?.port : "");
  const child = spawn(process.execPath, ["infra/cli/company-index.ts", ...args], {
    cwd: root,
    env: { ...process.env, PORT },
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { stdout, stderr, code };
}

test("the command verifies and rebuilds; it exits with 1 for faults and for an unknown company, and with 2 for wrong usage", async () => {
  const owner = { email: "owner@index.test", firstName: "", lastName: "", sub: "owner" };
  const made = await createCompany(contextOn(db.direct), { name: "Index", owner });
  const company = new IndexedCompany(made.company.id, db.direct);
  const N = String(company.id);
  await company.stage(({ id }) => flush({ table: db.direct, clock: systemClock }, id, { least: 1, settleMs: 0 }));

  const sound = `company ${N}: 8 prospects, 1 notes, 2 segments, 2 runs, 5 unflushed, 0 faults\n`;
  expect(await run("verify", "--company", N)).toEqual({ stdout: sound, stderr: target, code: 0 });

  const index = await indexInHand(db.direct, company.id);
  await db.direct.batchRemove([pieceOf(index, index.segment.id, "geo")]);
  const [faulty, wrong, unknown, nobody] = await Promise.all([
    run("verify", "--company", N),
    run("check", "--company", N),
    run("verify", "--company", "999999999"),
    run("rebuild"),
  ]);
  expect(faulty.code).toBe(1);
  expect(faulty.stdout).toContain(`lacks a part of geo of ${index.segment.id}\n`);
  expect(faulty.stdout).toMatch(/prospect \d+ is missing from the index\n/);
  expect(faulty.stdout).toMatch(/, [1-9]\d* faults\n$/);
  expect([wrong.code, unknown.code, nobody.code]).toEqual([2, 1, 2]);
  expect(wrong.stderr).toContain("usage: npm run index -- verify|rebuild|repair-activity --company N");
  expect(unknown.stderr).toContain("has no company 999999999");

  const mended = "8 prospects, 1 notes, 1 segments, replaced 2 runs; 0 newer runs stay\n";
  expect(await run("rebuild", "--company", N)).toMatchObject({ stdout: `company ${N}: ${mended}`, code: 0 });
  expect(await run("verify", "--company", N)).toMatchObject({ code: 0 });
});

test("the command removes damaged rows of the activity", async () => {
  const owner = { email: "owner@activity.test", firstName: "", lastName: "", sub: "activity" };
  const { id } = (await createCompany(contextOn(db.direct), { name: "Activity", owner })).company;
  const row = activityKeys.loggedFacts(id, 1, 0);
  await db.direct.batchPut([{ ...row, type: "loggedFacts", facts: new Uint8Array(9) }]);
  const repair = () => run("repair-activity", "--company", String(id));
  const removed = (count: number): string => `company ${id}: ${count} damaged rows of the activity removed\n`;
  expect(await repair()).toEqual({ stdout: `removed ${row.sk}\n${removed(1)}`, stderr: target, code: 0 });
  expect(await db.direct.get(row)).toBeUndefined();
  expect(await repair()).toEqual({ stdout: removed(0), stderr: target, code: 0 });
});
