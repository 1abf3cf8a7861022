/**
 * Tests the rule for the exit codes of all admin commands, benches and load tests, each in a process of its own: 0 for success, 1 for a
 * failure, and 2 for wrong usage. Only `npm run csv` also ends with 3, if the same command can resume its work.
 */
import { describe, expect, test } from "vitest";
import { present } from "../../harness/shapes.ts";
import { commandFiles, runFile } from "./command-process.ts";

/**
 * The subcommands of these commands have different options. The value of each command is the subcommand to which the test passes a wrong
 * option.
 */
const begins: Readonly<Record<string, readonly string[]>> = {
  csv: ["import"],
  company: ["suspend"],
  restore: ["delete"],
  key: ["create"],
};

/** Valid arguments for each admin command. The command accepts them, and then fails because there is no service. */
const failing: Readonly<Record<string, readonly string[]>> = {
  token: ["rep@acme.test"],
  company: ["suspend", "--company", "1"],
  restore: ["verify", "--table", "Restored"],
  key: ["create", "--company", "1", "--by", "owner@acme.test", "--name", "x", "--scopes", "prospects:read"],
  index: ["verify", "--company", "1"],
  webhooks: ["reconcile", "--company", "1"],
  senders: ["stop"],
  "dead-letters": ["list"],
  smoke: ["--base", "http://127.0.0.1:9"],
  canary: ["create"],
  csv: ["export", "all.csv", "--base", "http://127.0.0.1:9", "--token", "x"],
};

/** Expects that the command answers `--help` with its usage, its purpose and its exit codes. */
async function expectHelp(name: string, file: string): Promise<void> {
  const { status, stdout, stderr } = await runFile(file, ["--help"]);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(new RegExp(`^usage: npm run (?:--silent )?${name}(?:\\s|$)`));
  // After each form of the command, an indented line says what the command does. It begins with a verb or with the name of a subcommand.
  expect(stdout).not.toMatch(/^(?:usage: )?npm run .*\n(?! {4}[a-z])/m);
  const named = /\nexit code (.+)$/s.exec(stdout)?.[1] ?? "";
  expect([...named.matchAll(/(?:^|\W)(\d): /g)].map(([, code]) => code)).toEqual(
    name === "csv" ? ["0", "1", "2", "3"] : ["0", "1", "2"],
  );
}

/** Expects that the command refuses an unknown option in one line, with exit code 2. */
async function expectRefusedOption(name: string, file: string): Promise<void> {
  const { status, stdout, stderr } = await runFile(file, [...(begins[name] ?? []), "--no-such-option"]);
  expect([status, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
  expect(stderr).toContain("'--no-such-option'");
  expect(stderr).toContain(`npm run ${/^(token|key)$/.test(name) ? "--silent " : ""}${name} -- --help`);
}

/** Expects that the command, which reaches no service, prints its target first and ends with exit code 1, or with 3 if it is `csv`. */
async function expectNamedTarget(name: string, file: string): Promise<void> {
  const hasStage = !/^(?:token|smoke|csv)$/.test(name);
  const args = [...present(failing[name]), ...(hasStage ? ["--stage", "test"] : [])];
  const { status, stdout, stderr } = await runFile(file, args, { AWS_REGION: "eu-west-1" });
  expect([status, stdout]).toEqual([name === "csv" ? 3 : 1, ""]);
  expect(stderr).toMatch(
    hasStage ? /^target: stack Canvassing-test in eu-west-1\n/ : /^target: (?:local service|service) at /,
  );
}

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
  (name) => expectNamedTarget(name, present(files.get(name))),
);

test.each([
  ["token", ["rep@acme.test"]],
  ["csv", ["export", "all.csv", "--as", "owner@acme.test"]],
  ["smoke", []],
])("npm run %s without the local service says how to start it", async (name, args) => {
  const { stderr } = await runFile(present(files.get(name)), args);
  expect(stderr).toContain(" answers at http://127.0.0.1:9: start ");
  expect(stderr).toContain("npm start");
  expect(stderr).not.toMatch(/ECONNREFUSED|\n\s+at /);
});
