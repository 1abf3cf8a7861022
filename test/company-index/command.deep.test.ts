/** Tests that `npm run index -- repair-activity` removes damaged rows of a company's activity, and what the command prints. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import { createCompany } from "#shared/reference/create-company.ts";
import { tableCommand, target } from "../harness/table-command.ts";

const { db, run } = tableCommand("infra/cli/company-index.ts");

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
