/** `npm run cost` computes the costs per month of deployments of several sizes, and the latencies of requests on simulated working days. */
import { optionsOrExit } from "../../../infra/cli/command/options.ts";
import { writePage } from "../written-page.ts";
import { readMeasured, writeMeasured } from "./measured.ts";
import { costsOf, costTables, latencyTables } from "./tables.ts";

const usage = `npm run cost -- [options]
    prints the costs per month of deployments of several sizes, and the latencies of requests on simulated working days
    --measure   measures the operations again, and keeps the figures in measured.json
    --write     writes the tables into docs/cost.md and docs/latency.md
exit code 0: success, 1: failure, 2: wrong usage`;
const flag = { type: "boolean" } as const;
const options = optionsOrExit({ measure: flag, write: flag }, usage);
if (options.measure === true) {
  const { measure } = await import("./measure.ts");
  writeMeasured(await measure());
}
const measured = readMeasured();
const pages = { "cost.md": costTables(measured, costsOf(measured)), "latency.md": latencyTables(measured) };
for (const [name, text] of Object.entries(pages)) {
  console.log(text);
  if (options.write === true) writePage(name, "npm run cost -- --write", text);
}
// Threads that compressed data during a measurement may still be busy. Without this call, the process would wait for them.
process.exit();
