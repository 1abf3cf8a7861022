/** Tests how commands read their arguments, how they find the table, and their exit codes (2: wrong usage, 3 of csv: work to resume). */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { optionsOf, runCommand, WrongUsage } from "../../../infra/cli/command/options.ts";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { present } from "../../harness/shapes.ts";
import { wordsOf } from "../../security/documented-actions.ts";
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

const files = new Map(commandFiles());

test("each admin command that has a target is in the list of failing commands", () => {
  const admin = [...files].filter(([name, file]) => file.startsWith("infra/cli/") && name !== "release");
  expect(admin.map(([name]) => name).toSorted()).toEqual(Object.keys(failing).toSorted());
});

describe.each(commandFiles())("npm run %s", (name, file) => {
  test.concurrent("answers --help with its usage, its purpose and its exit codes", async () => {
    const { code, stdout, stderr } = await runFile(file, ["--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^usage: npm run (?:--silent )?${name}(?:\\s|$)`));
    // After each form of the command, an indented line says what the command does. The line begins with a verb or with a subcommand's name.
    expect(stdout).not.toMatch(/^(?:usage: )?npm run .*\n(?! {4}[a-z])/m);
    const named = /\nexit code (.+)$/s.exec(stdout)?.[1] ?? "";
    const codes = [...named.matchAll(/(?:^|\W)(\d): /g)].map(([, one]) => one);
    expect(codes).toEqual(name === "csv" ? ["0", "1", "2", "3"] : ["0", "1", "2"]);
  });

  test.concurrent("refuses an unknown option in one line, with exit code 2", async () => {
    const { code, stdout, stderr } = await runFile(file, [...(begins[name] ?? []), "--no-such-option"]);
    expect([code, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
    expect(stderr).toContain("'--no-such-option'");
    expect(stderr).toContain(`npm run ${/^(token|key)$/.test(name) ? "--silent " : ""}${name} -- --help`);
  });
});

test.concurrent.each(Object.entries(failing))(
  "npm run %s without a service names its target first, and ends with exit code 1, or with 3 if it is csv",
  async (name, given) => {
    const hasStage = !/^(?:token|smoke|csv)$/.test(name);
    const args = [...given, ...(hasStage ? ["--stage", "test"] : [])];
    const { code, stdout, stderr } = await runFile(present(files.get(name)), args, { AWS_REGION: "eu-west-1" });
    expect([code, stdout]).toEqual([name === "csv" ? 3 : 1, ""]);
    expect(stderr).toMatch(
      hasStage ? /^target: stack Canvassing-test in eu-west-1\n/ : /^target: (?:local service|service) at /,
    );
  },
);

test.each(["token.ts rep@acme.test", "csv.ts export all.csv --as owner@acme.test", "smoke.ts"])(
  "%s without the local service says how to start it",
  async (command) => {
    const { stderr } = await run(command, {});
    expect(stderr).toContain(" answers at http://127.0.0.1:9: start ");
    expect(stderr).toContain("npm start");
    expect(stderr).not.toMatch(/ECONNREFUSED|\n\s+at /);
  },
);

function run(command: string, env: NodeJS.ProcessEnv) {
  const [file = "", ...args] = command.split(" ");
  return runFile(`infra/cli/${file}`, args, env);
}

const NOT_HERE = "no local service answers at http://127.0.0.1:9: start it with npm start; and ";
const NO_REGION = "cannot be found without an AWS region: set AWS_REGION\n";
const NO_CREDENTIALS =
  "cannot be found without AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n";

test.concurrent.each([
  ["company-index.ts verify --company 1", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["company-index.ts rebuild --company 1 --stack Other", {}, 1, `the stack Other ${NO_REGION}`],
  ["dead-letters.ts list --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  [
    "webhooks.ts reconcile --company 1",
    { AWS_REGION: "us-east-1" },
    1,
    `target: stack Canvassing in us-east-1\n${NOT_HERE}the stack Canvassing ${NO_CREDENTIALS}`,
  ],
  ["company.ts create --name A --owner a@b.test", {}, 1, `${NOT_HERE}the stack Canvassing ${NO_REGION}`],
  ["company.ts create --name A --owner a@b.test --sub x", {}, 1, `the stack Canvassing ${NO_REGION}`],
  ["company.ts create --name A --owner a@b.test --stage test", {}, 1, `the stack Canvassing-test ${NO_REGION}`],
  [
    "company.ts create --name A --owner a@b.test --stage test --stack Other",
    {},
    2,
    "--stage and --stack cannot be combined: --stage test means --stack Canvassing-test\n",
  ],
])(
  "%s with %j reaches nothing, and one sentence says what is missing and what to do",
  async (command, env, code, stderr) => {
    expect(await run(command, env)).toMatchObject({ code, stdout: "", stderr });
  },
);

/** Runs a command while a local service answers every request with this status and body. Returns the output of the command. */
async function runBeside(status: number, body: string, command: string) {
  const service = await serveOnLoopback(async (_, response) => response.writeHead(status).end(body));
  const { stdout, stderr } = await run(command, { PORT: new URL(service.endpoint).port });
  const output = stdout + stderr;
  service.stop();
  return output.replaceAll(service.endpoint, "URL");
}

test("a command that meets a starting local service acts nowhere else", async () => {
  for (const command of ["company.ts check --company 1", "dead-letters.ts list", "smoke.ts"]) {
    const output = await runBeside(503, "the service is starting\n", command);
    expect(output).toContain('the local service at URL is starting: wait for the line "ready"');
  }
});

test("a command names the output that a service of another release lacks", async () => {
  const outputs = { TableName: "T", DynamoDbEndpoint: "http://127.0.0.1:9", SqsEndpoint: "http://127.0.0.1:9" };
  expect(await runBeside(200, JSON.stringify(outputs), "dead-letters.ts list")).toBe(
    "target: local service at URL\nURL has no output DeliveriesUrl, because it is of another release than this command\n",
  );
});

test.concurrent.each([
  ["load --companies 0", '--companies: must be a whole number from 1 to 2000, and not "0"'],
  ["load --seconds 1e2", '--seconds: must be a number from 1 to 600, and not "1e2"'],
  [
    "load --base api.example.com",
    '--base: must be a URL that begins with http:// or https://, and not "api.example.com"',
  ],
  ["load --noisy 2 --times 2", "--noisy and --times cannot be combined: run the command once with each"],
  ["load --max-ratio 3", "--max-ratio: needs --noisy"],
  ["load --tokens tokens.json", "--tokens: needs --base"],
  [
    'company create --name Acme --owner owner@acme.test --sub " s"',
    '--sub: must be a text of 1 to 255 characters without blanks at its ends, and not " s"',
  ],
  ["company create --name A --owner a@b", '--owner: must be an e-mail address, and not "a@b"'],
  ['company suspend --company " 1"', '--company: must be the id of a company, and not " 1"'],
  ["company export --company 1 --read-units 0", '--read-units: must be a whole number from 1 to 999999, and not "0"'],
  ['restore verify --table ""', '--table: must be the name of a table, and not ""'],
  ["restore table --as New --to yesterday", '--to: must be a time such as 2026-11-22T10:00:00Z, and not "yesterday"'],
  ["canary create --sub s", "SMOKE_TOKEN_URL: is required with --sub"],
  ["load --beside x", '--beside: must be hanging or fan-out or bulk, and not "x"'],
  [
    'csv import a.csv --token ""',
    "set the variable TOKEN or --token to an access token, or name a user of the local service by --as",
  ],
  ['csv import a.csv --as " "', '--as: must be an e-mail address, and not " "'],
  ["dead-letters redrive", "QUEUE: is required"],
  ["dead-letters redrive delivery", "delivery: no queue has this name"],
  [
    "load --base http://127.0.0.1:9 --tokens package.json",
    '--tokens: must be the name of a file with a list of tokens in JSON, and not "package.json"',
  ],
  ["load --base http://127.0.0.1:9", "--base needs --tokens FILE or the variable LOAD_TOKENS"],
  ["csv improt a.csv --token secret", "improt: unknown command"],
  ["csv --token secret", "usage: npm run csv -- import FILE [options]"],
  ["csv import --token secret", "FILE: is required"],
  ["csv import a b --token secret", "Unexpected argument 'b'"],
  ["token", "EMAIL: is required"],
  ["token a@acme.test b@acme.test", "Unexpected argument 'b@acme.test'"],
  [
    'company suspend --company 1 --stage ""',
    '--stage: must be 2 to 20 lower-case letters, digits and hyphens, such as test, and not ""',
  ],
  ['company suspend --company 1 --stack ""', '--stack: must be the name of a stack, and not ""'],
  ["company suspend", "--company: is required"],
  ["company crate --name A", "crate: unknown command"],
  ["restore delete --table Restored --as Other", "--as: this command has no such option"],
])("npm run %s names the reason in one line, with exit code 2", async (command, reason) => {
  const [name = "", ...args] = wordsOf(command);
  const { code, stdout, stderr } = await runFile(present(files.get(name)), args);
  expect([code, stdout, stderr.split("\n")[0]?.replace(/: see npm run .* -- --help$/, "")]).toEqual([2, "", reason]);
});

test("arguments are read; an option without a value, and an option that occurs twice and may not, lead to one line", () => {
  const usage = "npm run sample -- [--count N]";
  const read = (...args: string[]) => optionsOf(args, { count: { type: "string" } }, usage);
  const wrong = (reason: string) => new WrongUsage(`${reason}: see npm run sample -- --help`);
  expect({ ...read("--count", "7") }).toEqual({ count: "7" });
  expect(() => read("--count")).toThrow(wrong("Option '--count <value>' argument missing"));
  expect(() => read("--count", "7", "--count=8")).toThrow(wrong("Option '--count' occurs twice"));
  const list = { count: { type: "string", multiple: true } } as const;
  expect({ ...optionsOf(["--count", "7", "--count=8"], list, usage) }).toEqual({ count: ["7", "8"] });
});

test("a command without a result ends with the exit code that it has set, or with 0", async () => {
  const { exitCode } = process;
  onTestFinished(() => {
    process.exitCode = exitCode;
  });
  for (const set of [undefined, 1]) {
    process.exitCode = set;
    await runCommand(async () => undefined);
    expect(process.exitCode).toBe(set ?? 0);
  }
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

/** Commands that generate or check files run in this process, because a separate process would take a second to start. */
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
