/** Measures the times of cold lists, warm lists and pins. Times depend on the machine, so compare only their ratios. */
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pageOf } from "#shared/company-index/search/page.ts";
import { newGzip } from "#shared/http/streaming.ts";
import { type ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { interleaved, medianOf, type Taken } from "./clock.ts";
import { listNames, listQuery } from "./lists.ts";
import { type Stage, searchInMemory } from "./stage.ts";

export interface ListTimes {
  readonly name: string;
  readonly size: string;
  readonly total: number;
  /** The whole call in a newly started function, which loads all data from the table. */
  readonly cold: Taken;
  readonly warm: Taken;
  /** Only the exact total and the ids of the page, from an index in memory. The time of Postgres is compared with this time. */
  readonly index: Taken;
}

const COLD_RUNS = 3;
const WARM_RUNS = 15;

export async function listTimes(stage: Stage): Promise<ListTimes[]> {
  const times: ListTimes[] = [];
  for (const name of listNames) times.push(await timesOf(stage, name, listQuery(stage.company, name)));
  return times;
}

/** Measures a page deep in the list: page 10 000 if the company has a million prospects. */
export async function deepPageTimes(stage: Stage): Promise<ListTimes> {
  const page = Math.max(1, stage.company.count / 100);
  const query = listQuery(stage.company, "everything", page);
  await stage.fill(query);
  return timesOf(stage, `page ${page}`, query);
}

async function timesOf(stage: Stage, name: string, query: ListQuery): Promise<ListTimes> {
  const { context, caller, company } = stage;
  const cold = await medianOf(COLD_RUNS, () => listProspects(stage.cold(), caller, query));
  const { total } = await listProspects(context, caller, query);
  const warm = await medianOf(WARM_RUNS, () => listProspects(context, caller, query));
  const { page, pageSize, ...filter } = query;
  const { find } = await searchInMemory(stage, filter);
  const index = await medianOf(WARM_RUNS, async () => pageOf(await find(), (page - 1) * pageSize, pageSize));
  return { name, size: sizeOf(company.count), total, cold, warm, index };
}

/** Budget 8 limits the processor time of a pin. The parts of this time for text and for gzip are shown without a limit. */
export async function pinTimes({ context, caller, company }: Stage): Promise<Budget[]> {
  const pinsOf = () => mapPins(context, caller, {});
  const texts = [...(await pinsOf())];
  const pins = texts.reduce((sum, text) => sum + Buffer.from(text).toString().split('"id"').length - 1, 0);
  const runs = await interleaved(WARM_RUNS, {
    "text and gzip": async () => pipeline(Readable.from(await pinsOf()), newGzip(), nowhere()),
    text: async () => [...(await pinsOf())],
    gzip: () => pipeline(Readable.from(texts), newGzip(), nowhere()),
  });
  // A small company has no limit, because the fixed cost of a request is a large share of its time.
  const most = company.count < 100_000 ? null : 1;
  return [...runs].map(([name, { cpuMs }]) => ({
    number: 8,
    text: `processor time of a warm pin, ${name}, microseconds`,
    size: sizeOf(company.count),
    limit: name === "text and gzip" ? most : null,
    measured: (1_000 * cpuMs) / pins,
  }));
}

const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });
