/** Tests how commands read their arguments, and their exit codes: 0, 1, 2 for wrong usage, and for `npm run csv` 3 for work to resume. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { optionsOf, runCommand, WrongUsage } from "../../../infra/cli/command/options.ts";
import { present } from "../../harness/shapes.ts";
import { commandFiles, generatorFiles, runFile } from "./command-process.ts";

/** For each command whose subcommands have different options, the subcommand to which the test passes a wrong option. */
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

async function expectHelp(name: string, file: string): Promise<void> {
  const { code, stdout, stderr } = await runFile(file, ["--help"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(new RegExp(`^usage: npm run (?:--silent )?${name}(?:\\s|$)`));
  // After each form of the command, an indented line says what the command does. It begins with a verb or with the name of a subcommand.
  expect(stdout).not.toMatch(/^(?:usage: )?npm run .*\n(?! {4}[a-z])/m);
  const named = /\nexit code (.+)$/s.exec(stdout)?.[1] ?? "";
  expect([...named.matchAll(/(?:^|\W)(\d): /g)].map(([, code]) => code)).toEqual(
    name === "csv" ? ["0", "1", "2", "3"] : ["0", "1", "2"],
  );
}

async function expectRefusedOption(name: string, file: string): Promise<void> {
  const { code, stdout, stderr } = await runFile(file, [...(begins[name] ?? []), "--no-such-option"]);
  expect([code, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
  expect(stderr).toContain("'--no-such-option'");
  expect(stderr).toContain(`npm run ${/^(token|key)$/.test(name) ? "--silent " : ""}${name} -- --help`);
}

/** Expects that the command, which reaches no service, prints its target first and ends with exit code 1, or with 3 if it is `csv`. */
async function expectNamedTarget(name: string, file: string): Promise<void> {
  const hasStage = !/^(?:token|smoke|csv)$/.test(name);
  const args = [...present(failing[name]), ...(hasStage ? ["--stage", "test"] : [])];
  const { code, stdout, stderr } = await runFile(file, args, { AWS_REGION: "eu-west-1" });
  expect([code, stdout]).toEqual([name === "csv" ? 3 : 1, ""]);
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

const create = ["create", "--name", "Acme", "--owner", "owner@acme.test"];

test.concurrent.each([
  ["load", ["--companies", "0"], '--companies: must be a whole number from 1 to 2000, and not "0"'],
  ["load", ["--seconds", "1e2"], '--seconds: must be a number from 1 to 600, and not "1e2"'],
  [
    "load",
    ["--base", "api.example.com"],
    '--base: must be a URL that begins with http:// or https://, and not "api.example.com"',
  ],
  ["load", ["--noisy", "2", "--times", "2"], "--noisy and --times cannot be combined: run the command once with each"],
  ["load", ["--max-ratio", "3"], "--max-ratio: needs --noisy"],
  ["load", ["--tokens", "tokens.json"], "--tokens: needs --base"],
  [
    "company",
    [...create, "--sub", " s"],
    '--sub: must be a text of 1 to 255 characters without blanks at its ends, and not " s"',
  ],
  ["company", ["create", "--name", "A", "--owner", "a@b"], '--owner: must be an e-mail address, and not "a@b"'],
  ["company", ["suspend", "--company", " 1"], '--company: must be the id of a company, and not " 1"'],
  [
    "company",
    ["export", "--company", "1", "--read-units", "0"],
    '--read-units: must be a whole number from 1 to 999999, and not "0"',
  ],
  ["restore", ["verify", "--table", ""], '--table: must be the name of a table, and not ""'],
  [
    "restore",
    ["table", "--as", "New", "--to", "yesterday"],
    '--to: must be a time such as 2026-11-22T10:00:00Z, and not "yesterday"',
  ],
  ["canary", ["create", "--sub", "s"], "SMOKE_TOKEN_URL: is required with --sub"],
  ["load", ["--beside", "x"], '--beside: must be hanging or fan-out or bulk, and not "x"'],
  [
    "csv",
    ["import", "a.csv", "--token", ""],
    "set the variable TOKEN or --token to an access token, or name a user of the local service by --as",
  ],
  ["csv", ["import", "a.csv", "--as", " "], '--as: must be an e-mail address, and not " "'],
  ["dead-letters", ["redrive"], "QUEUE: is required"],
  ["dead-letters", ["redrive", "delivery"], "delivery: no queue has this name"],
  [
    "load",
    ["--base", "http://127.0.0.1:9", "--tokens", "package.json"],
    '--tokens: must be the name of a file with a list of tokens in JSON, and not "package.json"',
  ],
  ["load", ["--base", "http://127.0.0.1:9"], "--base needs --tokens FILE or the variable LOAD_TOKENS"],
  ["csv", ["improt", "a.csv", "--token", "secret"], "improt: unknown command"],
  ["token", [], "EMAIL: is required"],
  ["token", ["a@acme.test", "b@acme.test"], "Unexpected argument 'b@acme.test'"],
  [
    "company",
    ["suspend", "--company", "1", "--stage", ""],
    '--stage: must be 2 to 20 lower-case letters, digits and hyphens, such as test, and not ""',
  ],
  ["company", ["suspend", "--company", "1", "--stack", ""], '--stack: must be the name of a stack, and not ""'],
  ["company", ["suspend"], "--company: is required"],
  ["company", ["crate", "--name", "A"], "crate: unknown command"],
  ["restore", ["delete", "--table", "Restored", "--as", "Other"], "--as: this command has no such option"],
])("npm run %s with %j names the reason in one line, with exit code 2", async (name, args, reason) => {
  const { code, stdout, stderr } = await runFile(present(files.get(name)), args);
  expect([code, stdout, stderr.split("\n")[0]?.replace(/: see npm run .* -- --help$/, "")]).toEqual([2, "", reason]);
});

const usage = "npm run sample -- [--count N]";
const read = (...args: string[]) => optionsOf(args, { count: { type: "string" } }, usage);

test("arguments are read; an option that takes one value and occurs twice leads to one line, unless it may be repeated", () => {
  expect({ ...read("--count", "7") }).toEqual({ count: "7" });
  expect(() => read("--count", "7", "--count=8")).toThrow(
    new WrongUsage("Option '--count' occurs twice: see npm run sample -- --help"),
  );
  const list = { count: { type: "string", multiple: true } } as const;
  expect({ ...optionsOf(["--count", "7", "--count=8"], list, usage) }).toEqual({ count: ["7", "8"] });
});

test.each([
  ["--cuont=7", "Unknown option '--cuont': see npm run sample -- --help"],
  ["--count", "Option '--count <value>' argument missing: see npm run sample -- --help"],
  ["seven", "Unexpected argument 'seven': see npm run sample -- --help"],
])("the argument %s leads to one line", (wrong, line) => {
  const fault = () => read(wrong);
  expect(fault).toThrow(WrongUsage);
  expect(fault).toThrow(new RegExp(`^${line.replaceAll(/[<>-]/g, "\\$&")}$`));
});

type Main = () => Promise<number | undefined>;
const mains: readonly [name: string, main: Main, code: number][] = [
  ["without a result", async () => undefined, 0],
  ["with a result", async () => 3, 3],
  [
    "that has set a code",
    async () => {
      process.exitCode = 1;
      return undefined;
    },
    1,
  ],
  ["with an error", () => Promise.reject(new Error("as planned")), 1],
  ["with wrong arguments", () => Promise.reject(new WrongUsage("as planned")), 2],
];
test.each(mains)("the exit code of a command %s is right", async (_, main, code) => {
  const { exitCode } = process;
  process.exitCode = undefined;
  const error = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => {
    process.exitCode = exitCode;
    error.mockRestore();
  });
  await runCommand(main);
  expect(process.exitCode).toBe(code);
});

test("all commands read their arguments in the same way", () => {
  const files = globSync("{infra/cli,test/bench,test/load}/**/*.ts", { cwd: root });
  const parsing = files.filter((file) => readFileSync(join(root, file), "utf8").includes('from "node:util"'));
  const own = parsing.filter((file) => /\bparseArgs\b/.test(readFileSync(join(root, file), "utf8")));
  expect(own).toEqual(["infra/cli/command/options.ts"]);
  for (const [name, file] of commandFiles()) {
    const text = readFileSync(join(root, file), "utf8");
    expect(/\/(?:options|company-command)\.ts"/.test(text), name).toBe(true);
  }
});

const Generator = z.object({
  main: z.custom<(args: readonly string[]) => Promise<number | undefined>>((value) => typeof value === "function"),
});

/** Each generator runs in this process, because starting a separate process would take a second. */
describe.each(generatorFiles())("npm run %s", (name, file) => {
  const main = async (...args: string[]) =>
    z.parse(Generator, await import(pathToFileURL(join(root, file)).href)).main(args);

  test("answers --help with its usage and its exit codes, and does nothing else", async () => {
    const ended = new Error("ended");
    const exit = vi.spyOn(process, "exit").mockImplementation(() => {
      throw ended;
    });
    const print = vi.spyOn(console, "log").mockImplementation(() => undefined);
    await expect(main("--help")).rejects.toBe(ended);
    expect(exit.mock.calls).toEqual([[0]]);
    const [[text] = []] = print.mock.calls;
    expect(text).toMatch(new RegExp(`^usage: npm run ${name}(?:\\s|$)[^]*\nexit code 0: .+, 1: .+, 2: wrong usage$`));
    vi.restoreAllMocks();
  });

  test.each(["--no-such-option", "unexpected"])("refuses %s in one line", async (wrong) => {
    const error: unknown = await main(wrong).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WrongUsage);
    expect(String(error)).toMatch(new RegExp(`^[^\n]*'${wrong}'[^\n]*: see npm run ${name} -- --help$`));
  });

  test("passes its arguments on, and sets the exit code as all commands do", () => {
    const text = readFileSync(join(root, file), "utf8");
    expect(text.trimEnd().split("\n").at(-1)).toBe(
      "if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));",
    );
    expect(text.match(/process\.argv/g)).toHaveLength(1);
  });
});

test("npm start explains itself, and refuses a wrong option in one line", async () => {
  const run = (option: string) => runFile("infra/local/start.ts", [option]);
  const stdout = expect.stringMatching(/^usage: npm start -- /);
  expect(await run("--help")).toEqual({ code: 0, stdout, stderr: "" });
  const stderr = "Unknown option '--seeds': see npm start -- --help\n";
  expect(await run("--seeds")).toEqual({ code: 2, stdout: "", stderr });
});
