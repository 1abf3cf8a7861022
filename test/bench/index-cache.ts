/**
 * `npm run bench:cache` compares the memory of a company index with the cache's estimate of it. The exit code is 1 if the estimate is too
 * far off. index-memory.ts measures the memory.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod/mini";
import { ListQuery } from "#shared/prospects/list/list.ts";
import { optionsOrExit } from "../../infra/cli/command/options.ts";
import { setStage } from "./stage.ts";
import { startBenchTable } from "./table.ts";

const IndexMemory = z.object({
  countedBytes: z.number(),
  takenBytes: z.number(),
  coldMs: z.number(),
  warmMs: z.number(),
  coldUnits: z.number(),
});

/**
 * Compares the cache's estimate of an index's memory with the real memory, which a separate process measures. The exit code is 1 if the
 * estimate is more than 10 % below or 35 % above the real memory.
 */
async function measureOne(): Promise<void> {
  const table = await startBenchTable();
  const { company, clock, fill } = await setStage(table, 100_000);
  const lists = [{}, { status: "New" }, { city: "Denver" }, { tagId: "Referral" }, { rep: "Rep Number 3" }];
  const searches = ["denver", "garcia landlord", "555-1"].map((search) => ({ search }));
  for (const query of [...lists, ...searches]) await fill(ListQuery.parse({ ...query, pageSize: "1" }));
  const { endpoint } = table;
  const job = JSON.stringify({ endpoint, companyId: company.id, ownerId: company.ownerId, now: clock.ms });
  const script = join(import.meta.dirname, "index-memory.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script, job]);
  await table.stop();
  console.log(
    "| 100 000 prospects | counted MB | taken MB | cold ms | warm ms | cold read units |\n|---|---|---|---|---|---|",
  );
  for (const [kind, one] of Object.entries(z.parse(z.record(z.string(), IndexMemory), JSON.parse(stdout)))) {
    const { countedBytes, takenBytes, coldMs, warmMs, coldUnits } = one;
    const shown = [countedBytes / 1e6, takenBytes / 1e6, coldMs, warmMs, coldUnits].map((figure) => figure.toFixed(1));
    console.log(`| ${kind} | ${shown.join(" | ")} |`);
    if (countedBytes < 0.9 * takenBytes || countedBytes > 1.35 * takenBytes) process.exitCode = 1;
  }
}

const usage = `npm run bench:cache
    compares the memory of a company index with the cache's estimate
exit code 0: the estimate is right, 1: the estimate is too far off, or any other error, 2: wrong usage`;

if (import.meta.main) {
  optionsOrExit({}, usage);
  await measureOne();
}
