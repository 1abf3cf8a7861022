/** Tests that the admin commands and the benches print their usage for `--help`, and one line for a wrong option. */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { optionsOf, WrongUsage } from "../../infra/cli/options.ts";
import { commandFiles } from "./commands.ts";

const usage = "npm run sample -- [--count N]";
const read = (...args: string[]) => optionsOf(args, { count: { type: "string" } }, usage);

test("arguments are read", () => {
  expect({ ...read("--count", "7") }).toEqual({ count: "7" });
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

/** The file that parses the arguments of all commands. */
const parsers = ["infra/cli/options.ts"];

test("all commands read their arguments in the same way", () => {
  const files = globSync("{infra/cli,test/bench,test/load}/**/*.ts", { cwd: root });
  const parsing = files.filter((file) => readFileSync(join(root, file), "utf8").includes('from "node:util"'));
  const own = parsing.filter((file) => /\bparseArgs\b/.test(readFileSync(join(root, file), "utf8")));
  expect(own.toSorted()).toEqual(parsers.toSorted());
  for (const [name, file] of commandFiles()) {
    const text = readFileSync(join(root, file), "utf8");
    expect(/\/(?:options|company-command)\.ts"/.test(text), name).toBe(true);
  }
});

test("npm run cost explains itself, and refuses a wrong option in one line", () => {
  const run = (option: string) =>
    spawnSync(process.execPath, ["test/bench/cost/run.ts", option], { cwd: root, encoding: "utf8" });
  expect(run("--help")).toMatchObject({ status: 0, stdout: expect.stringMatching(/^usage: npm run cost/), stderr: "" });
  expect(run("--wirte")).toMatchObject({
    status: 2,
    stdout: "",
    stderr: "Unknown option '--wirte': see npm run cost -- --help\n",
  });
});
