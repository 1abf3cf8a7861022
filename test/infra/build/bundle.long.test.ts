/** Tests that each function bundle can be loaded without other files, and executes little code when it is loaded. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import * as z from "zod/mini";
import { budgetGroup } from "../../../infra/build/bundle.ts";
import { functionFiles } from "../../../infra/synth.ts";
import { addressOf, bundles } from "./built-bundles.ts";

const Loaded = z.object({
  started: z.array(z.object({ handler: z.string(), bytes: z.number(), calls: z.number() })),
  nodeModules: z.array(z.string()),
});
const files = functionFiles();
const script = join(import.meta.dirname, "started-code.ts");
const run = spawnSync(process.execPath, [script, ...files.map(addressOf)], { encoding: "utf8", env: {} });
expect(run.stderr).toBe("");
const { started, nodeModules } = Loaded.parse(JSON.parse(run.stdout));

/** Maximum number of Node's modules that all bundles together load, beyond those of every process. Each makes the start slower. */
const NODE_MODULES = 130;

it("bundles load without any environment, with few modules of Node, and export a handler", () => {
  expect(nodeModules.length).toBeGreaterThan(0);
  expect(nodeModules.length).toBeLessThanOrEqual(NODE_MODULES);
  expect(
    nodeModules.filter((name) => name.includes("undici")),
    "parts of fetch",
  ).toEqual([]);
  expect(started.map(({ handler }) => handler)).toEqual(files.map(() => "function"));
});

/** Maximum work of loading a bundle, on which its start time depends. Functions that know all events make the most calls. */
const STARTED = { table: { bytes: 120_000, calls: 24_000 }, others: { bytes: 200_000, calls: 24_000 } } as const;

function exceeds(file: string, bytes: number, calls: number): boolean {
  const made = bundles.get(file);
  const limit = STARTED[made === undefined ? "table" : budgetGroup(made)];
  return bytes > limit.bytes || calls > limit.calls;
}

/** The test limits the executed code and not the start times, because start times differ from run to run, and the code does not. */
it("a bundle executes little of its code when it starts", () => {
  expect(started.map((it) => it.bytes > 500)).toEqual(files.map(() => true));
  const slow = started.flatMap(({ bytes, calls }, at) =>
    exceeds(files[at] ?? "", bytes, calls) ? [{ file: files[at], bytes, calls }] : [],
  );
  expect(slow).toEqual([]);
});
