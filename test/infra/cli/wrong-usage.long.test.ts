/**
 * Tests how commands read their arguments. The generators and `npm start` must print their usage and refuse a wrong option.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { optionsOf, runCommand, WrongUsage } from "../../../infra/cli/command/options.ts";
import { commandFiles, generatorFiles } from "./command-process.ts";

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

test("npm start explains itself, and refuses a wrong option in one line", () => {
  const run = (option: string) =>
    spawnSync(process.execPath, ["infra/local/start.ts", option], { cwd: root, encoding: "utf8" });
  expect(run("--help")).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^usage: npm start -- /),
    stderr: "",
  });
  expect(run("--seeds")).toMatchObject({
    status: 2,
    stdout: "",
    stderr: "Unknown option '--seeds': see npm start -- --help\n",
  });
});
