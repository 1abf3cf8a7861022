/** Compares the times of this service with those of a Postgres database that has the same rows and suitable indexes. */
import { deepEqual } from "node:assert/strict";
import type { Criteria } from "#shared/company-index/criteria.ts";
import { pageOf } from "#shared/company-index/search/page.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import type { ListQuery } from "#shared/prospects/list/list.ts";
import { mapPins } from "#shared/prospects/list/pins.ts";
import { sizeOf } from "./budget.ts";
import { median, medianOf } from "./clock.ts";
import { listNames, listQuery } from "./lists.ts";
import type { Postgres } from "./postgres-server.ts";
import { type BenchCompany, makeProspect } from "./prospects.ts";
import { type Stage, searchInMemory } from "./stage.ts";

export interface Comparison {
  readonly name: string;
  readonly size: string;
  readonly total: number;
  /**
   * Median milliseconds of this service and of Postgres for the same result. For a list, `postgresMs` is the sum of the medians of two
   * statements: the count and the page of ids.
   */
  readonly oursMs: number;
  readonly postgresMs: number;
}

const RUNS = 9;

export async function compare(postgres: Postgres, stage: Stage): Promise<Comparison[]> {
  await load(postgres, stage.company);
  const comparisons: Comparison[] = [];
  for (const name of listNames)
    comparisons.push(await compareList(postgres, stage, name, listQuery(stage.company, name)));
  const page = Math.max(1, stage.company.count / 100);
  comparisons.push(await compareList(postgres, stage, `page ${page}`, listQuery(stage.company, "everything", page)));
  comparisons.push(await comparePins(postgres, stage));
  return comparisons;
}

const SCHEMA = `
create extension if not exists pg_trgm;
drop table if exists prospect;
create unlogged table prospect (
  id bigint primary key, created_at bigint not null, status_id bigint, assignee_id bigint, tag_ids bigint[] not null,
  city text, place point, words text not null, digits text not null
);`;

const INDEXES = `
create index on prospect (created_at desc, id desc);
create index on prospect (status_id);
create index on prospect (assignee_id);
create index on prospect (city);
create index on prospect using gin (tag_ids);
create index on prospect using gist (place);
create index on prospect using gin (words gin_trgm_ops);
create index on prospect using gin (digits gin_trgm_ops);
vacuum analyze prospect;`;

async function load(postgres: Postgres, company: BenchCompany): Promise<void> {
  await postgres.run(SCHEMA);
  await postgres.copy("prospect", lines(company));
  await postgres.run(INDEXES);
}

/** Yields the rows in pieces, because one string with all rows would need too much memory. */
function* lines(company: BenchCompany): Generator<string> {
  let piece = "";
  for (let at = 0; at < company.count; at++) {
    piece += lineOf(company, at);
    if (at % 500 !== 499 && at !== company.count - 1) continue;
    yield piece;
    piece = "";
  }
}

/** Returns a line for COPY. One column contains all searchable texts, including the note, so that a search needs no join. */
function lineOf(company: BenchCompany, at: number): string {
  const { prospect, note } = makeProspect(company, at);
  const { id, createdAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits } = indexRow(prospect);
  const words = note === undefined ? text : `${text}\n${indexNote(note).text}`;
  const place = lat === null || lng === null ? null : `(${lng},${lat})`;
  const fields = [id, createdAt, statusId, assignedToUserId, `{${tagIds.join()}}`, city, place, words, phoneDigits];
  return `${fields.map(copied).join("\t")}\n`;
}

const copied = (value: string | number | null): string =>
  value === null ? "\\N" : String(value).replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\t/g, "\\t");

async function compareList(postgres: Postgres, stage: Stage, name: string, query: ListQuery): Promise<Comparison> {
  const { company } = stage;
  const { page, pageSize, ...filter } = query;
  const offset = (page - 1) * pageSize;
  const { criteria, find } = await searchInMemory(stage, filter);
  const matches = await find();
  const where = conditions(criteria);
  const count = `select count(*) from prospect where ${where};`;
  const ids = `select id from prospect where ${where} order by created_at desc, id desc limit ${pageSize} offset ${offset};`;
  const found = (await postgres.run(`${count}\n${ids}`)).filter((line) => line !== "").map(Number);
  deepEqual(found, [matches.total, ...pageOf(matches, offset, pageSize).map(({ id }) => id)], `${name} in Postgres`);
  const { wallMs } = await medianOf(RUNS, async () => pageOf(await find(), offset, pageSize));
  const [countMs, pageMs] = [await timeOf(postgres, count), await timeOf(postgres, ids)];
  const size = sizeOf(company.count);
  return { name, size, total: matches.total, oursMs: wallMs, postgresMs: countMs + pageMs };
}

async function comparePins(postgres: Postgres, { context, caller, company }: Stage): Promise<Comparison> {
  const { wallMs } = await medianOf(RUNS, async () => [...(await mapPins(context, caller, {}))]);
  const pin = `'{"id":' || id || ',"lat":' || place[1] || ',"lng":' || place[0] || ',"statusColor":"#9CA3AF"}'`;
  const sql = `copy (select ${pin} from prospect where place is not null) to '/dev/null';`;
  const [total = 0] = (await postgres.run("select count(*) from prospect where place is not null;")).map(Number);
  const postgresMs = await timeOf(postgres, sql);
  return { name: "all pins as text", size: sizeOf(company.count), total, oursMs: wallMs, postgresMs };
}

/** Returns the median milliseconds of the statement. The statement must be on one line. */
async function timeOf(postgres: Postgres, sql: string): Promise<number> {
  const printed = await postgres.run(`${sql}\n`.repeat(RUNS + 1), true);
  const times = printed.flatMap((line) => /^Time: ([0-9.]+) ms/.exec(line)?.[1] ?? []).map(Number);
  // During the first run, Postgres loads the pages of its tables into memory.
  return median(times.slice(1));
}

function conditions(criteria: Criteria): string {
  const { box, createdFrom, createdTo, statusIds, assigneeIds, tagIds, cities, words } = criteria;
  const parts = ["true"];
  if (box !== undefined) parts.push(`place <@ box '((${box[0]},${box[1]}),(${box[2]},${box[3]}))'`);
  if (createdFrom !== undefined) parts.push(`created_at >= ${createdFrom}`);
  if (createdTo !== undefined) parts.push(`created_at <= ${createdTo}`);
  if (statusIds !== undefined) parts.push(isAmong("status_id", statusIds));
  if (assigneeIds !== undefined) parts.push(isAmong("assignee_id", assigneeIds));
  if (tagIds !== undefined) parts.push(`tag_ids && '{${[...tagIds].join()}}'`);
  if (cities !== undefined) parts.push(`city in (${[...cities].map(literal).join()})`);
  for (const { text, digits } of words) {
    const found = [`words like ${pattern(text)}`, ...digits.map((number) => `digits like ${pattern(number)}`)];
    parts.push(`(${found.join(" or ")})`);
  }
  return parts.join(" and ");
}

function isAmong(column: string, ids: ReadonlySet<number | null>): string {
  const numbers = [...ids].filter((id) => id !== null);
  const among = numbers.length === 0 ? "false" : `${column} in (${numbers.join()})`;
  return ids.has(null) ? `(${among} or ${column} is null)` : among;
}

const literal = (text: string): string => `'${text.replace(/'/g, "''")}'`;
const pattern = (text: string): string => literal(`%${text.replace(/[\\%_]/g, "\\$&")}%`);
