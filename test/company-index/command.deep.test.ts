/** Tests the output and the exit codes of `npm run index`, which verifies and rebuilds an index, and repairs the activity. */
import { expect, test } from "vitest";
import { systemClock } from "#shared/clock.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { tableCommand, target } from "../harness/table-command.ts";
import { indexInHand, pieceOf } from "./damage.ts";
import { IndexedCompany } from "./indexed-company.ts";

const { db, run } = tableCommand("infra/cli/company-index.ts");

async function newCompany(sub: string): Promise<number> {
  const owner = { email: `${sub}@index.test`, firstName: "", lastName: "", sub };
  return (await createCompany(contextOn(db.direct), { name: "Index", owner })).company.id;
}

test("the command verifies and rebuilds; it exits with 1 for faults and for an unknown company, and with 2 for wrong usage", async () => {
  const company = new IndexedCompany(await newCompany("verified"), db.direct);
  const N = String(company.id);
  await company.stage(({ id }) => flush({ table: db.direct, clock: systemClock }, id, { least: 1, settleMs: 0 }));

  const sound = `company ${N}: 8 prospects, 1 notes, 2 segments, 2 parts, 5 unflushed, 0 faults\n`;
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
  expect(faulty.stdout).toContain(`lacks an item of geo of ${index.segment.id}\n`);
  expect(faulty.stdout).toMatch(/prospect \d+ is missing from the index\n/);
  expect(faulty.stdout).toMatch(/, [1-9]\d* faults\n$/);
  expect([wrong.code, unknown.code, nobody.code]).toEqual([2, 1, 2]);
  expect(wrong.stderr).toContain("usage: npm run index -- verify|rebuild|repair-activity --company N");
  expect(unknown.stderr).toContain("has no company 999999999");

  const mended = "8 prospects, 1 notes, 1 segments, replaced 2 parts; 0 newer parts stay\n";
  expect(await run("rebuild", "--company", N)).toMatchObject({ stdout: `company ${N}: ${mended}`, code: 0 });
  expect(await run("verify", "--company", N)).toMatchObject({ code: 0 });
});

test("the command removes damaged rows of the activity", async () => {
  const id = await newCompany("repaired");
  const row = activityKeys.loggedFacts(id, 1, 0);
  await db.direct.batchPut([{ ...row, type: "loggedFacts", facts: new Uint8Array(9) }]);
  const repair = () => run("repair-activity", "--company", String(id));
  const removed = (count: number): string => `company ${id}: ${count} damaged rows of the activity removed\n`;
  expect(await repair()).toEqual({ stdout: `removed ${row.sk}\n${removed(1)}`, stderr: target, code: 0 });
  expect(await db.direct.get(row)).toBeUndefined();
  expect(await repair()).toEqual({ stdout: removed(0), stderr: target, code: 0 });
});
