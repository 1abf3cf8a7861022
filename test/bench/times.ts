/** Measures the times of lists and map pins. They depend on the machine, so compare only ratios of times from the same run. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pageOf } from "#shared/company-index/search/page.ts";
import { gzipped } from "#shared/http/gzip.ts";
import { type ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { medianOf, nowhere, type Taken } from "./clock.ts";
import { listNames, listQuery, pinTexts } from "./lists.ts";
import { type Stage, searchInMemory } from "./stage.ts";

export interface ListTimes {
  readonly name: string;
  readonly size: string;
  readonly total: number;
  readonly cold: Taken;
  readonly warm: Taken;
  /** The time in which a search of the index in memory finds the total and the ids of the page, without reading their rows. */
  readonly index: Taken;
}

const COLD_RUNS = 3;
const WARM_RUNS = 15;

export async function listTimes(stage: Stage): Promise<ListTimes[]> {
  const times: ListTimes[] = [];
  for (const name of listNames) times.push(await timesOf(stage, name, listQuery(stage.company, name)));
  return times;
}

/** Measures page 10 000 of a company with a million prospects. */
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

/** Measures the processor time that a map pin needs for its JSON text and for the compression. */
export async function pinTimes({ context, caller, company }: Stage): Promise<Budget> {
  const { pins } = await pinTexts(context, caller);
  const zip = async () => pipeline(Readable.from(gzipped(await mapPins(context, caller, {}))), nowhere());
  const { cpuMs } = await medianOf(WARM_RUNS, zip);
  const text = "processor time of a warm pin, text and gzip, microseconds (aim 1)";
  return budgetsOf(sizeOf(company.count))(8, text, null, (1_000 * cpuMs) / pins);
}
