/**
 * `npm run simulate` prints the latencies of requests on simulated working days, for 1, 50 and 1 000 reps of one company with 100 000
 * prospects. The random numbers have fixed seeds, so each run prints the same latencies. `--write` writes docs/latency.md. `--prospects N`
 * changes the number of prospects, and `--seed N` the simulated days.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { wholeNumber } from "../../../infra/command/accepted.ts";
import { checked, optionsOrExit, runCommand } from "../../../infra/command/options.ts";
import { LOADED_PROSPECTS } from "./index-costs.ts";
import { latencyReport } from "./latency.ts";
import { readMeasured } from "./measured.ts";

const usage = `npm run simulate -- [options]
    prints the latencies of requests on simulated working days of a company with 1, 50 and 1000 reps
    --write         writes docs/latency.md
    --prospects N   prospects of the company (${LOADED_PROSPECTS})
    --seed N        other days, with other random numbers (default: the days of docs/latency.md)
exit code 0: success, 1: failure, 2: wrong usage`;
const options = optionsOrExit(
  { prospects: { type: "string" }, seed: { type: "string" }, write: { type: "boolean" } },
  usage,
);
await runCommand(async () => {
  const { prospects = LOADED_PROSPECTS, seed } = checked(
    z.object({ prospects: z.optional(wholeNumber(1, 10_000_000)), seed: z.optional(wholeNumber(1, 1_000_000_000)) }),
    options,
    usage,
  );
  const text = latencyReport(readMeasured(), { prospects, ...(seed !== undefined && { seed }) });
  console.log(text);
  if (options.write === true) writeFileSync(join(import.meta.dirname, "../../../docs/latency.md"), text);
  return undefined;
});
