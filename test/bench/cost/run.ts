/**
 * `npm run cost` prints the costs per month of deployments of several sizes. `--measure` measures the operations again and stores the
 * results in measured.json. `--write` writes docs/cost.md. With `--check`, the exit code is 1 if docs/cost.md differs from the model's
 * output.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { optionsOrExit } from "../../../infra/command/options.ts";
import { readMeasured, writeMeasured } from "./measured.ts";
import { report } from "./report.ts";

const usage = `npm run cost -- [options]
    prints the costs per month of deployments of several sizes
    --measure   measures the operations again, and keeps the figures in measured.json
    --write     writes docs/cost.md
    --check     compares docs/cost.md with the model
exit code 0: success, 1: docs/cost.md differs from the model, or any other error, 2: wrong usage`;
const flag = { type: "boolean" } as const;
const options = optionsOrExit({ measure: flag, write: flag, check: flag }, usage);
if (options.measure === true) {
  const { measure } = await import("./measure.ts");
  writeMeasured(await measure());
}
const page = join(import.meta.dirname, "../../../docs/cost.md");
const text = report(readMeasured());
if (options.check === true) {
  if (readFileSync(page, "utf8") !== text) {
    console.error("docs/cost.md differs from the model: run `npm run cost -- --write`");
    process.exitCode = 1;
  }
} else console.log(text);
if (options.write === true) writeFileSync(page, text);
// The threads that have compressed data during a measurement may still be busy, and would delay the end of the process.
process.exit();
