/**
 * Runs as a separate process that loads the search index of one company several times. It compares the real memory of a loaded index with
 * the memory that the cache estimates for it.
 */
import { setImmediate as turn } from "node:timers/promises";
import * as z from "zod/mini";
import { companyIndex } from "#shared/company-index/read/company-index.ts";
import { contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { openBenchTable } from "./table.ts";

const Job = z.object({ endpoint: z.string(), companyId: z.int(), ownerId: z.int(), now: z.int() });
const COPIES = 4;

export interface IndexMemory {
  /** The cache's estimate of the bytes of one loaded index. */
  readonly countedBytes: number;
  /** The measured bytes of one loaded index: the growth of the process's live memory, divided by the number of loaded indexes. */
  readonly takenBytes: number;
  /**
   * `coldMs` and `coldUnits` are the processor time and the read units of the first read, which loads the index. `warmMs` is the processor
   * time of a read of the loaded index.
   */
  readonly coldMs: number;
  readonly warmMs: number;
  readonly coldUnits: number;
}

const { endpoint, companyId, ownerId, now } = Job.parse(JSON.parse(process.argv[2] ?? ""));
const caller = { companyId, userId: ownerId, role: "owner" as const, permissions: [] };
const fresh = () => contextOn(openBenchTable(endpoint), { now: () => now });
type Reader = ReturnType<typeof fresh>;

/** Returns the bytes of live memory: V8's heap and the typed arrays outside the heap. */
function takenBytes(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const cpuMs = (): number => process.cpuUsage().user / 1_000;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const before = cpuMs();
  await work();
  return cpuMs() - before;
}

async function measure(read: (reader: Reader) => Promise<unknown>): Promise<IndexMemory> {
  // The first read in this process also loads code and data that do not belong to an index. It runs before the measurement, so that the
  // result does not include them.
  await read(fresh());
  const before = takenBytes();
  const readers = Array.from({ length: COPIES }, fresh);
  let [coldMs, warmMs, countedBytes, coldUnits] = [0, 0, 0, 0];
  for (const reader of readers) {
    const before = cpuMs();
    const { usage } = await metered(() => read(reader));
    coldMs += cpuMs() - before;
    coldUnits += usage.readUnits;
    // The index builds its sort orders and word indexes only when a loaded index is read again. Twelve more reads build all of them.
    for (let i = 0; i < 12; i++) await read(reader);
    await turn();
    warmMs += await timed(() => read(reader));
    countedBytes += companyIndex(reader.table).cachedBytes;
  }
  const taken = takenBytes() - before;
  const of = (sum: number): number => sum / COPIES;
  return {
    countedBytes: of(countedBytes),
    takenBytes: of(taken),
    coldMs: of(coldMs),
    warmMs: of(warmMs),
    coldUnits: of(coldUnits),
  };
}

const list = (query: Record<string, string>) => (reader: Reader) =>
  listProspects(reader, caller, ListQuery.parse({ ...query, pageSize: "1" }));
async function pins(reader: Reader): Promise<void> {
  for (const _ of await mapPins(reader, caller, {}));
}
const filters = [{}, { status: "New" }, { city: "Denver" }, { tagId: "Referral" }, { rep: "Rep Number 3" }];
async function lists(reader: Reader): Promise<void> {
  for (const query of filters) await list(query)(reader);
}

const measured: Record<string, IndexMemory> = {
  list: await measure(lists),
  "list and map": await measure(async (reader) => {
    await lists(reader);
    await pins(reader);
  }),
  "list, map and search": await measure(async (reader) => {
    await lists(reader);
    await pins(reader);
    for (const search of ["denver", "garcia landlord", "555-1"]) await list({ search })(reader);
  }),
};
process.stdout.write(JSON.stringify(measured));
