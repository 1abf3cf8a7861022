/** `npm run cost` computes the costs per month of deployments of several sizes. */
import { optionsOrExit } from "../../../infra/cli/command/options.ts";
import { writePage } from "../written-page.ts";
import { readMeasured, writeMeasured } from "./measured.ts";
import { costsOf, costTables } from "./tables.ts";

const usage = `npm run cost -- [options]
    prints the costs per month of deployments of several sizes
    --measure   measures the operations again, and keeps the figures in measured.json
    --write     writes the tables into docs/cost.md
exit code 0: success, 1: failure, 2: wrong usage`;
const flag = { type: "boolean" } as const;
const options = optionsOrExit({ measure: flag, write: flag }, usage);
if (options.measure === true) {
  const { measure } = await import("./measure.ts");
  writeMeasured(await measure());
}
const measured = readMeasured();
const text = costTables(measured, costsOf(measured));
console.log(text);
if (options.write === true) writePage("cost.md", "npm run cost -- --write", text);
// Threads that compressed data during a measurement may still be busy. Without this call, the process would wait for them.
process.exit();
