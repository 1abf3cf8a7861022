/**
 * Checks the rule for the exit codes of one command, in a process of its own: 0 for success, 1 for a failure, and 2 for wrong usage. Only
 * `npm run csv` also ends with 3, if the same command can resume its work.
 */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { expect } from "vitest";
import { root } from "../../../infra/build/bundle.ts";

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of an operator who has neither AWS nor a local service. */
const { PATH, NODE_COMPILE_CACHE } = process.env;
const nowhere = {
  ...{ PATH, NODE_COMPILE_CACHE, HOME: tmpdir(), PORT: "9" },
  ...{ AWS_EC2_METADATA_DISABLED: "true", AWS_REGION: "eu-west-1" },
};

export const runFile = (file: string, args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { cwd: root, env: nowhere }, (error, stdout, stderr) => {
      resolve({ status: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });

/**
 * The subcommands of these commands have different options. For each command, the list says with which subcommand the test passes a wrong
 * option.
 */
const begins: Readonly<Record<string, readonly string[]>> = {
  csv: ["import"],
  company: ["suspend"],
  restore: ["delete"],
};

/** Valid arguments for each admin command. The command accepts them, and then fails because there is no service. */
export const failing: Readonly<Record<string, readonly string[]>> = {
  token: ["rep@acme.test"],
  company: ["suspend", "--company", "1"],
  restore: ["verify", "--table", "Restored"],
  index: ["verify", "--company", "1"],
  webhooks: ["reconcile", "--company", "1"],
  senders: ["stop"],
  "dead-letters": ["list"],
  smoke: ["--base", "http://127.0.0.1:9"],
  canary: ["create"],
  csv: ["export", "all.csv", "--base", "http://127.0.0.1:9", "--token", "x"],
};

/** Expects that the command answers `--help` with its usage, its purpose and its exit codes. */
export async function expectHelp(name: string, file: string): Promise<void> {
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
export async function expectRefusedOption(name: string, file: string): Promise<void> {
  const { status, stdout, stderr } = await runFile(file, [...(begins[name] ?? []), "--no-such-option"]);
  expect([status, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
  expect(stderr).toContain("'--no-such-option'");
  expect(stderr).toContain(`npm run ${name === "token" ? "--silent " : ""}${name} -- --help`);
}

/** Expects that the command, which reaches no service, names its target first and ends with exit code 1. */
export async function expectNamedTarget(name: string, file: string): Promise<void> {
  const { status, stdout, stderr } = await runFile(file, failing[name] ?? []);
  expect([status, stdout]).toEqual([name === "csv" ? 3 : 1, ""]);
  expect(stderr).toMatch(/^target: (?:local service|service|stack) /);
}
