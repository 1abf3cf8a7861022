/** Measures the processor time of a list beside that of a plain read, and how many lists per second the local service answers. */
import { Agent, get } from "node:http";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { mapConcurrently } from "#shared/all-ended.ts";
import * as keys from "#shared/db/keys.ts";
import { checked } from "#shared/http/endpoint.ts";
import { listProspects, ProspectPage } from "#shared/prospects/list/list.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { TABLE } from "../harness/faulty-dynamodb.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { type Budget, budgetsOf } from "./budget.ts";
import { interleaved, median, taken } from "./clock.ts";
import { listQuery } from "./lists.ts";
import { makeProspect } from "./prospects.ts";
import type { Stage } from "./stage.ts";
import { startService } from "./started-service.ts";
import { plainSdk } from "./table.ts";

const PAGE_SIZE = 50;
const WARM_UP = 1_000;
const REPETITIONS = 15;
/** Number of lists in each repetition. The clock for processor time is too coarse for a single list. */
const LISTS = 20;

/**
 * Milliseconds of the plain Query on the machine for which the budget was set. An older version of the list took 6.2 ms there, 1.32 times
 * as long as the Query: 6.2 / 1.32 is 4.7.
 */
const PLAIN_MS = 4.7;
/** Maximum milliseconds of a list in a warm function, on the machine on which the plain Query takes `PLAIN_MS`. */
const LIST_CPU_MS = 3;

/** The plain rows are stored under a company id that no company has: the id of the measured company plus this number. */
const NO_COMPANY = 500_000;

/**
 * Measures a list in a warm function, and a plain Query that reads the same prospects from rows with one attribute for each field. Both
 * write JSON. Times depend on the machine, so the budget limits the time of the list on a machine where the Query takes `PLAIN_MS`.
 */
export async function listBesideBareReads(stage: Stage, endpoint: string): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const query = { ...listQuery(company, "everything"), pageSize: PAGE_SIZE };
  const again = async () => JSON.stringify(checked(ProspectPage, await listProspects(context, caller, query)));
  const list = (): Promise<string> => {
    forgetRows(context.table, caller.companyId);
    return again();
  };
  const { items } = ProspectPage.parse(JSON.parse(await list()));
  const plain = await plainQuery(stage, endpoint, items);
  for (let i = 0; i < WARM_UP; i++) {
    await list();
    await again();
    await plain();
  }
  const times = await interleaved(REPETITIONS, {
    list: () => repeat(LISTS, list),
    again: () => repeat(LISTS, again),
    plain: () => repeat(LISTS, plain),
  });
  const [ours = Number.NaN, inMemory = Number.NaN, theirs = Number.NaN] = [...times.values()].map(
    ({ cpuMs }) => cpuMs / LISTS,
  );
  const what = "processor time of a warm list of 50";
  return [
    line(13, `${what}, milliseconds where a plain Query takes ${PLAIN_MS}`, LIST_CPU_MS, (PLAIN_MS * ours) / theirs),
    line(0, `${what}, beside a plain Query of its prospects`, null, ours / theirs),
    line(0, `${what}, milliseconds on this machine`, null, ours),
    line(0, `${what} with its rows in memory, milliseconds on this machine`, null, inMemory),
    line(0, "processor time of a plain Query of 50 prospects, milliseconds on this machine", null, theirs),
  ];
}

async function plainQuery(
  { context, company }: Stage,
  endpoint: string,
  items: readonly { readonly id: number }[],
): Promise<() => Promise<string>> {
  const id = company.id + NO_COMPANY;
  const rows = items.map((item) => makeProspect(company, item.id - company.firstId).prospect);
  const filled = (row: object) => Object.entries(row).filter(([, value]) => value !== null && value !== undefined);
  await context.table.batchPut(
    rows.map((row) => ({ ...keys.prospect(id, row.id), ...Object.fromEntries(filled(row)) })),
  );
  const ids = items.map((item) => item.id);
  const { pk, from, upTo } = keys.prospectSpan(id, Math.min(...ids), Math.max(...ids));
  const client = plainSdk(endpoint);
  const read = async () => {
    const command = new QueryCommand({
      TableName: TABLE,
      KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :upTo",
      ExpressionAttributeValues: { ":pk": pk, ":from": from, ":upTo": upTo },
    });
    return (await client.send(command)).Items ?? [];
  };
  const found = (await read()).length;
  if (found !== PAGE_SIZE) throw new Error(`the plain Query finds ${found} prospects instead of ${PAGE_SIZE}`);
  return async () => JSON.stringify(await read());
}

const line = budgetsOf("10 k");

async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await work();
}

/** Concurrent clients: two for each environment of the function in the local service, so that a request is always waiting. */
const CLIENTS = 8;
const REQUESTS = 600;
/** Lists before the measurement. Node.js compiles hot code in each thread, and the rate grows until about this number. */
const WARM_UP_REQUESTS = 3_000;
const RATES = 5;

/** Settings of the local service: limits of requests per second so high that they delay no measured request. */
const UNTHROTTLED = { REQUEST_RATE: "100000", COMPANY_RATE: "100000" };

/**
 * Pages that the clients list in turn. Together, they have more prospects than a function keeps in memory, so all rows are read from the
 * table.
 */
const PAGES = 25;

/**
 * Measures lists through the whole local service (gateway, authorizer, function and table), which shares the machine with the clients. The
 * aim is 150 lists a second on a machine with two processors.
 */
export async function listRate(): Promise<Budget[]> {
  const service = await startService(["--seed", "10000"], UNTHROTTLED);
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  try {
    const authorization = `Bearer ${await localToken(service.url, "owner@acme.test")}`;
    const rateOf = async (pages: number, which: string): Promise<Budget> => {
      let page = 0;
      const list = () => {
        const url = `${service.url}/api/prospects?pageSize=${PAGE_SIZE}&page=${(page++ % pages) + 1}`;
        return drained(url, { agent, headers: { authorization } });
      };
      const lists = (count: number) => mapConcurrently(Array.from({ length: count }), CLIENTS, list);
      await lists(WARM_UP_REQUESTS);
      const rates: number[] = [];
      for (let i = 0; i < RATES; i++) rates.push((1_000 * REQUESTS) / (await taken(() => lists(REQUESTS))).wallMs);
      return line(
        0,
        `lists of 50 a second through the local service, ${which}, ${CLIENTS} clients`,
        null,
        median(rates),
      );
    };
    return [await rateOf(1, "one page again and again"), await rateOf(PAGES, `${PAGES} pages in turn`)];
  } finally {
    agent.destroy();
    await service.stop();
  }
}

const drained = (url: string, options: { agent: Agent; headers: Record<string, string> }): Promise<void> =>
  new Promise((resolve, reject) => {
    get(url, options, (answer) => {
      answer.resume().once("end", () => {
        if (answer.statusCode === 200) resolve();
        else reject(new Error(`GET ${url} answered ${answer.statusCode}`));
      });
    }).once("error", reject);
  });
