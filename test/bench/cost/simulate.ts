/**
 * `npm run simulate` prints the latencies of requests on simulated working days, for 1, 50 and 1 000 reps of one company with 100 000
 * prospects. The random numbers have fixed seeds, so each run prints the same latencies. `--write` writes docs/latency.md. `--prospects N`
 * changes the number of prospects, and `--seed N` the simulated days.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { checked, optionsOrExit, runCommand } from "../../../infra/command/options.ts";
import { LOADED_PROSPECTS } from "./index-costs.ts";
import { latencyReport } from "./latency.ts";
import { readMeasured } from "./measured.ts";

const usage = `npm run simulate -- [options]
    --write         writes docs/latency.md
    --prospects N   prospects of the company (${LOADED_PROSPECTS})
    --seed N        other days, with other random numbers
exit code 0: success, 2: wrong usage`;
const options = optionsOrExit(
  { prospects: { type: "string" }, seed: { type: "string" }, write: { type: "boolean" } },
  usage,
);
const WholeNumber = z.optional(
  z.pipe(z.string(), z.pipe(z.transform(Number), z.int("must be a whole number").check(z.minimum(1)))),
);
await runCommand(async () => {
  const { prospects = LOADED_PROSPECTS, seed } = checked(
    z.object({ prospects: WholeNumber, seed: WholeNumber }),
    options,
    usage,
  );
  const text = latencyReport(readMeasured(), { prospects, ...(seed !== undefined && { seed }) });
  console.log(text);
  if (options.write === true) writeFileSync(join(import.meta.dirname, "../../../docs/latency.md"), text);
  return undefined;
});
