/**
 * `npm run cost` prints what deployments of several sizes cost in a month. `--measure` measures the operations again and keeps the figures
 * in measured.json, `--write` writes docs/cost.md, and `--check` exits with 1 if docs/cost.md differs from the model.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readMeasured, writeMeasured } from "./measured.ts";
import { report } from "./report.ts";

const { values: options } = parseArgs({
  options: { measure: { type: "boolean" }, write: { type: "boolean" }, check: { type: "boolean" } },
});
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
// The local service leaves no open handles, but the compression threads of a measurement may still be busy.
process.exit();
