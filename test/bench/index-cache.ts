/**
 * `npm run bench:cache` first compares the memory of a company index with the cache's estimate of it. The exit code is 1 if the estimate is
 * too far off. The command then models how a Lambda environment caches company indexes. For several memory sizes and numbers of companies,
 * it prints the hit rate of the cache, and the duration and price of a request. index-memory.ts measures the input of the model.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod/mini";
import { cacheBytesOf } from "#shared/company-index/read/company-index.ts";
import { ListQuery } from "#shared/prospects/list/list.ts";
import { optionsOrExit } from "../../infra/cli/command/options.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import { prices } from "../../infra/settings/prices.ts";
import { setStage } from "./stage.ts";
import { startBenchTable } from "./table.ts";

/**
 * Megabytes of memory with which Lambda gives a function one whole processor. A smaller function gets a share of a processor. A read of the
 * index runs on one processor only, so more memory than this does not make it faster.
 */
const WHOLE_CPU_MB = 1_769;
/** Assumed milliseconds in which a request waits for the table. A cold request also waits for the transfer of the index. */
const WARM_WAIT_MS = 8;
const COLD_WAIT_MS = 40;

const IndexMemory = z.object({
  countedBytes: z.number(),
  takenBytes: z.number(),
  coldMs: z.number(),
  warmMs: z.number(),
  coldUnits: z.number(),
});

/**
 * The cost of one kind of request for a company of 100 000 prospects: cached bytes, processor milliseconds of a warm and of a cold
 * request, and read units of a cold request.
 */
export interface Kind {
  readonly bytes: number;
  readonly warmMs: number;
  readonly coldMs: number;
  readonly coldUnits: number;
}

/** These values were measured with `index-memory.ts`. `warmMs` also includes the time to parse the request and to write the answer. */
const kinds = {
  list: { bytes: 4_853_200, warmMs: 3, coldMs: 75, coldUnits: 138 },
  pins: { bytes: 6_404_848, warmMs: 45, coldMs: 145, coldUnits: 206 },
  search: { bytes: 18_249_348, warmMs: 6, coldMs: 420, coldUnits: 540 },
} as const satisfies Record<string, Kind>;

export type Mix = Readonly<Partial<Record<keyof typeof kinds, number>>>;

export interface Modelled {
  readonly hits: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly dollars: number;
}

const REQUESTS = 40_000;

/**
 * Simulates the requests to one Lambda environment. Its cache evicts the data of the companies that were used least recently. If the mix of
 * requests contains searches, the cache first evicts only the searchable texts of these companies, and their other data only if more memory
 * is needed. All companies have 100 000 prospects.
 */
export function model(memoryMb: number, companies: number, mix: Mix): Modelled {
  const random = randomSequence(7);
  const budget = cacheBytesOf(memoryMb);
  /**
   * The cached data of each company. A `Map` keeps the order of insertion, and each use inserts the entry again. The first entry is
   * therefore the least recently used one, and is evicted first.
   */
  const cache = new Map<number, Kind>();
  let kept = 0;
  let hits = 0;
  let dollars = 0;
  const times: number[] = [];
  for (let i = -REQUESTS / 4; i < REQUESTS; i++) {
    const company = Math.floor(random() * companies);
    const kind = pick(mix, random());
    const found = cache.get(company);
    const isHit = found !== undefined && found.bytes >= kind.bytes;
    const next = found !== undefined && isHit ? found : kind;
    cache.delete(company);
    cache.set(company, next);
    kept += next.bytes - (found?.bytes ?? 0);
    for (const [oldest, { bytes }] of cache) {
      if (kept <= budget || oldest === company) break;
      if (bytes <= kinds.list.bytes || mix.search === undefined) continue;
      cache.set(oldest, kinds.list);
      kept -= bytes - kinds.list.bytes;
    }
    for (const [oldest, { bytes }] of cache) {
      if (kept <= budget || oldest === company) break;
      cache.delete(oldest);
      kept -= bytes;
    }
    if (i < 0) continue;
    const cpu = (isHit ? kind.warmMs : kind.coldMs) / Math.min(1, memoryMb / WHOLE_CPU_MB);
    const ms = cpu + (isHit ? WARM_WAIT_MS : COLD_WAIT_MS);
    times.push(ms);
    if (isHit) hits++;
    dollars += (ms / 1_000) * (memoryMb / 1_024) * prices.lambda.gbSecond;
    if (!isHit) dollars += kind.coldUnits * prices.dynamoDb.readUnit;
  }
  times.sort((a, b) => a - b);
  return {
    hits: hits / REQUESTS,
    p50Ms: times[REQUESTS / 2] ?? 0,
    p95Ms: times[REQUESTS * 0.95] ?? 0,
    dollars: (dollars / REQUESTS) * 1_000_000,
  };
}

function pick(mix: Mix, at: number): Kind {
  let sum = 0;
  for (const [name, share = 0] of Object.entries(mix)) {
    sum += share;
    const kind = Object.entries(kinds).find(([key]) => key === name)?.[1];
    if (at < sum && kind !== undefined) return kind;
  }
  return kinds.list;
}

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

function printModel(): void {
  const mixes = {
    "list, one in ten a search": { list: 0.9, search: 0.1 },
    "list without searches": { list: 1 },
    pins: { pins: 1 },
  };
  for (const [name, mix] of Object.entries(mixes)) {
    console.log(
      `\n${name}\n| companies | memory MB | kept MB | hits | p50 ms | p95 ms | $ a million |\n|---|---|---|---|---|---|---|`,
    );
    for (const companies of [1, 50, 200]) {
      for (const memoryMb of [1_024, 1_769, 2_048, 3_008, 4_096, 5_120, 8_192]) {
        const { hits, p50Ms, p95Ms, dollars } = model(memoryMb, companies, mix);
        const keptMb = Math.round(cacheBytesOf(memoryMb) / 2 ** 20);
        const times = [p50Ms.toFixed(0), p95Ms.toFixed(0), dollars.toFixed(2)];
        console.log(`| ${[companies, memoryMb, keptMb, `${(hits * 100).toFixed(1)} %`, ...times].join(" | ")} |`);
      }
    }
  }
}

const usage = `npm run bench:cache
    compares the memory of a company index with the cache's estimate, and prints a model of the cache
exit code 0: the estimate is right, 1: the estimate is too far off, or any other error, 2: wrong usage`;

if (import.meta.main) {
  optionsOrExit({}, usage);
  await measureOne();
  printModel();
}
