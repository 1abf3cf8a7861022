/** Budget 11: sizes of the bundles, and starts of a process with one against starts with an empty handler. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { BUNDLE_BUDGET_BYTES, bundle } from "../../infra/bundle.ts";
import { functionFiles } from "../../infra/synth.ts";
import type { Budget } from "./budget.ts";
import { interleaved } from "./clock.ts";

/** What a company's day consists of: the largest among them. */
const STARTED = ["prospects/list", "prospects/pins", "prospects/create", "events/publish"] as const;
const RUNS = 21;

export async function startBudgets(): Promise<Budget[]> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const bundles = await bundle(functionFiles(), directory);
    const [largest = ["", { bytes: 0 }]] = [...bundles].sort(([, a], [, b]) => b.bytes - a.bytes);
    const empty = join(directory, "empty", "index.mjs");
    mkdirSync(join(directory, "empty"));
    writeFileSync(empty, "export const handler = async () => undefined;\n");
    const files = [...new Set([...STARTED, largest[0]])];
    const times = await interleaved(RUNS, {
      empty: () => start(empty),
      ...Object.fromEntries(files.map((file) => [file, () => start(join(directory, file, "index.mjs"))])),
    });
    const emptyMs = times.get("empty")?.wallMs ?? Number.NaN;
    const ratio = (file: string): number => (times.get(file)?.wallMs ?? Number.NaN) / emptyMs;
    const line = (text: string, limit: number, measured: number): Budget => {
      return { number: 11, text, size: "", limit, measured };
    };
    return [
      line(`largest bundle (${largest[0]}), KB`, BUNDLE_BUDGET_BYTES / 1_024, largest[1].bytes / 1_024),
      ...files.map((file) => line(`start of ${file} / start of an empty handler`, 3, ratio(file))),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A process from its beginning to its end, which comes as soon as the handler is there. */
function start(file: string): void {
  const script = `await import(${JSON.stringify(pathToFileURL(file).href)}); process.exit(0);`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: {},
  });
  if (status !== 0) throw new Error(`${file} does not start: ${stderr}`);
}
