/** Measures the sizes of the bundles, and start times as multiples of that of an empty handler (budget 11 of docs/benchmarks.md). */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { BUNDLE_BUDGET_BYTES, budgetGroup, bundle } from "../../infra/build/bundle.ts";
import { functionFiles } from "../../infra/synth.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import { interleaved } from "./clock.ts";

/** The functions whose start times are measured: those of a user's daily work. */
const STARTED = [
  "authorize",
  "prospects/list",
  "prospects/pins",
  "prospects/create",
  "events/publish",
  "events/deliver",
  "prospects/import",
] as const;
/** Maximum start times, as multiples of that of an empty handler. `table` is for bundles whose only AWS client is that of DynamoDB. */
const START_BUDGET = { table: 3.2, others: 3.8 } as const;
const RUNS = 21;

const groups = ["table", "others"] as const;
const groupNames = { table: "the table's client alone", others: "clients of SQS, S3 or Cognito" } as const;

export async function startBudgets(): Promise<Budget[]> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-bench-"));
  try {
    const bundles = await bundle(functionFiles(), directory);
    const empty = join(directory, "empty", "index.mjs");
    mkdirSync(join(directory, "empty"));
    writeFileSync(empty, "export const handler = async () => undefined;\n");
    const times = await interleaved(RUNS, {
      empty: () => start(empty),
      ...Object.fromEntries(STARTED.map((file) => [file, () => start(join(directory, file, "index.mjs"))])),
    });
    const emptyMs = times.get("empty")?.wallMs ?? Number.NaN;
    const ratio = (file: string): number => (times.get(file)?.wallMs ?? Number.NaN) / emptyMs;
    const line = budgetsOf("");
    return [
      ...groups.map((group) => {
        const sizes = [...bundles].filter(([, made]) => budgetGroup(made) === group).map(([, { bytes }]) => bytes);
        const limit = BUNDLE_BUDGET_BYTES[group] / 1_024;
        return line(11, `largest bundle with ${groupNames[group]}, KB`, limit, Math.max(0, ...sizes) / 1_024);
      }),
      ...STARTED.map((file) => {
        const made = bundles.get(file);
        const limit = made === undefined ? Number.NaN : START_BUDGET[budgetGroup(made)];
        return line(11, `start of ${file} / start of an empty handler`, limit, ratio(file));
      }),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function start(file: string): void {
  const script = `await import(${JSON.stringify(pathToFileURL(file).href)}); process.exit(0);`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: {},
  });
  if (status !== 0) throw new Error(`${file} does not start: ${stderr}`);
}
