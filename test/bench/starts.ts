/** Budget 11: sizes of the bundles, and starts of a process with one against starts with an empty handler. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundle, bundleBudget } from "../../infra/bundle.ts";
import { keyServiceUsers } from "../../infra/routes.ts";
import { functionFiles } from "../../infra/synth.ts";
import type { Budget } from "./budget.ts";
import { interleaved } from "./clock.ts";

/** What a company's day consists of: the largest among them. */
const STARTED = ["prospects/list", "prospects/pins", "prospects/create", "events/publish", "events/deliver"] as const;
const RUNS = 21;

export async function startBudgets(): Promise<Budget[]> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const bundles = await bundle(functionFiles(), directory);
    const sorted = [...bundles].sort(([, a], [, b]) => b.bytes - a.bytes);
    const [plain, withKeyService] = [false, true].map(
      (uses) => sorted.find(([file]) => keyServiceUsers.has(file) === uses) ?? (["", { bytes: 0 }] as const),
    );
    if (plain === undefined || withKeyService === undefined) throw new Error("there are no bundles");
    const empty = join(directory, "empty", "index.mjs");
    mkdirSync(join(directory, "empty"));
    writeFileSync(empty, "export const handler = async () => undefined;\n");
    const files = [...new Set([...STARTED, plain[0], withKeyService[0]])];
    const times = await interleaved(RUNS, {
      empty: () => start(empty),
      ...Object.fromEntries(files.map((file) => [file, () => start(join(directory, file, "index.mjs"))])),
    });
    const emptyMs = times.get("empty")?.wallMs ?? Number.NaN;
    const ratio = (file: string): number => (times.get(file)?.wallMs ?? Number.NaN) / emptyMs;
    const line = (text: string, limit: number, measured: number): Budget => {
      return { number: 11, text, size: "", limit, measured };
    };
    const size = (text: string, [file, { bytes }]: typeof plain, limit: number): Budget =>
      line(`${text} (${file}), KB`, limit / 1_024, bytes / 1_024);
    return [
      size("largest bundle", plain, bundleBudget(false)),
      size("largest bundle with the client of the key service", withKeyService, bundleBudget(true)),
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
