/**
 * Tests the rule for the exit codes of all admin commands, benches and load tests, each in a process of its own: 0 for success, 1 for a
 * failure, and 2 for wrong usage. Only `npm run csv` also ends with 3, if the same command can resume its work.
 */
import { describe, expect, test } from "vitest";
import { commandFiles } from "./commands.ts";
import { expectHelp, expectNamedTarget, expectRefusedOption, failing, runFile } from "./exit-codes.ts";

const files = new Map(commandFiles());

test("each admin command that has a target is in the list of failing commands", () => {
  const admin = [...files].filter(([name, file]) => file.startsWith("infra/cli/") && name !== "release");
  expect(admin.map(([name]) => name).toSorted()).toEqual(Object.keys(failing).toSorted());
});

describe.each(commandFiles())("npm run %s", (name, file) => {
  test.concurrent("answers --help with its usage, its purpose and its exit codes", () => expectHelp(name, file));

  test.concurrent("refuses an unknown option in one line, with exit code 2", () => expectRefusedOption(name, file));
});

test.concurrent.each(Object.keys(failing))(
  "npm run %s without a service names its target first, and ends with exit code 1",
  (name) => expectNamedTarget(name, files.get(name) ?? ""),
);

test.each([
  ["token", ["rep@acme.test"]],
  ["csv", ["export", "all.csv", "--as", "owner@acme.test"]],
  ["smoke", []],
])("npm run %s without the local service says how to start it", async (name, args) => {
  const { stderr } = await runFile(files.get(name) ?? "", args);
  expect(stderr).toContain(" answers at http://127.0.0.1:9: start ");
  expect(stderr).toContain("npm start");
  expect(stderr).not.toMatch(/ECONNREFUSED|\n\s+at /);
});
