/**
 * Tests the exit codes of one admin command, each in a process of its own: 0 for success, 1 for a failure, and 2 for wrong usage.
 * Also tests that the list of commands for the release test is complete.
 */
import { expect, test } from "vitest";
import { commandFiles } from "./commands.ts";
import { expectHelp, expectNamedTarget, expectRefusedOption, failing } from "./exit-codes.ts";

const files = new Map(commandFiles());

test("each admin command that has a target is in the list above", () => {
  const admin = [...files].filter(([name, file]) => file.startsWith("infra/cli/") && name !== "release");
  expect(admin.map(([name]) => name).toSorted()).toEqual(Object.keys(failing).toSorted());
});

test("npm run company answers --help, refuses an unknown option in one line, and names its target first without a service", async () => {
  const file = files.get("company") ?? "";
  await expectHelp("company", file);
  await expectRefusedOption("company", file);
  await expectNamedTarget("company", file);
});
