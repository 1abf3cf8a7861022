/** Tests `--help` and a wrong option of each command. Each command runs in a separate process. */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { commandFiles } from "./commands.ts";

/** Commands with subcommands. Each subcommand has its own options, so the test also passes the name of one subcommand. */
const begins: Readonly<Record<string, readonly string[]>> = {
  csv: ["import"],
  company: ["suspend"],
  restore: ["delete"],
};

describe.each(commandFiles())("npm run %s", (name, file) => {
  const run = (...args: string[]) => spawnSync(process.execPath, [file, ...args], { cwd: root, encoding: "utf8" });

  test("answers --help with its usage", () => {
    const { status, stdout, stderr } = run("--help");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^usage: npm run (?:--silent )?${name}(?:\\s|$)`));
  });

  test("refuses an unknown option in one line", () => {
    const { status, stdout, stderr } = run(...(begins[name] ?? []), "--no-such-option");
    expect([status, stdout, stderr.trim().split("\n").length]).toEqual([2, "", 1]);
    expect(stderr).toContain("'--no-such-option'");
    expect(stderr).toContain(`npm run ${name === "token" ? "--silent " : ""}${name} -- --help`);
  });
});
