/**
 * Measures the processor time of a list of prospects, compared with a plain read of the same rows. Also measures how many lists per second
 * the local service answers.
 */
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
/** Number of lists in each repetition. The clock for processor time is too coarse to measure a single list. */
const LISTS = 20;

/**
 * Milliseconds of processor time of the plain Query of `listBesideBareReads` on the machine for which the budget was set. The number was
 * not measured. It is computed from an older version of the list, which took 6.2 ms on that machine and 1.32 times as long as the Query:
 * 6.2 / 1.32 is 4.7.
 */
const PLAIN_MS = 4.7;
/** Maximum milliseconds of a list in a warm function, on the machine on which the plain Query takes `PLAIN_MS`. */
const LIST_CPU_MS = 3;

/** The plain rows are stored under an id that no company has: the sum of the measured company's id and this number. */
const NO_COMPANY = 500_000;

/**
 * Measures the processor time of a list in a warm function, and of a plain Query. The Query reads the same prospects from rows that have
 * one attribute for each field. The list and the Query write their results as JSON. Milliseconds depend on the machine and its other load.
 * The budget therefore limits a converted value: the milliseconds of the list on a machine where the Query takes `PLAIN_MS`.
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

/**
 * Numbers of concurrent clients. The local service runs at most four environments of a function. With eight clients, a request is already
 * waiting when an environment becomes free, so the environments never wait for a client. With four clients, each environment waits until
 * its client sends the next request.
 */
const CLIENTS = [4, 8] as const;
const MOST_CLIENTS = 8;
const REQUESTS = 600;
/**
 * Number of lists before the measurement. Node.js compiles hot code during the first lists in each thread, and the rate grows until about
 * this number.
 */
const WARM_UP_REQUESTS = 3_000;
const RATES = 5;

/**
 * Settings of the local service. These rate limits are higher than any rate that the bench reaches, so that no throttle affects the
 * measurement.
 */
const UNTHROTTLED = { REQUEST_RATE: "100000", COMPANY_RATE: "100000" };

/**
 * Number of different pages that the clients list in turn. Together, the pages have more prospects than a function keeps in memory. When
 * the clients list a page again, its rows have already been evicted, so all rows are read from the table.
 */
const PAGES = 25;

/**
 * Maximum milliseconds per list: the elapsed time, divided by the number of lists of all concurrent clients. This is 150 lists a second, on
 * a machine with two processors.
 */
const LIST_MS = 6.67;

/**
 * Measures lists of 50 prospects through the whole local service: gateway, authorizer, function and table. The service and the clients
 * share one machine. The clients first list one page again and again, and then many pages in turn.
 */
export async function listRate(): Promise<Budget[]> {
  const service = await startService(["--seed", "10000"], UNTHROTTLED);
  const agent = new Agent({ keepAlive: true, maxSockets: MOST_CLIENTS });
  try {
    const authorization = `Bearer ${await localToken(service.url, "owner@acme.test")}`;
    const rowsOf = async (pages: number, which: string): Promise<Budget[]> => {
      let page = 0;
      const list = () => {
        const url = `${service.url}/api/prospects?pageSize=${PAGE_SIZE}&page=${(page++ % pages) + 1}`;
        return drained(url, { agent, headers: { authorization } });
      };
      await concurrently(MOST_CLIENTS, WARM_UP_REQUESTS, list);
      const measured: Budget[] = [];
      for (const clients of CLIENTS) {
        const rates: number[] = [];
        for (let i = 0; i < RATES; i++) {
          const { wallMs } = await taken(() => concurrently(clients, REQUESTS, list));
          rates.push((1_000 * REQUESTS) / wallMs);
        }
        const rate = median(rates);
        const how = `${which}, ${clients} clients`;
        measured.push(
          line(0, `lists of 50 a second through the local service, ${how}`, null, rate),
          line(0, `milliseconds for each of these lists (aim ${LIST_MS}), ${how}`, null, 1_000 / rate),
        );
      }
      return measured;
    };
    return [...(await rowsOf(1, "one page again and again")), ...(await rowsOf(PAGES, `${PAGES} pages in turn`))];
  } finally {
    agent.destroy();
    await service.stop();
  }
}

const concurrently = (clients: number, requests: number, work: () => Promise<void>) =>
  mapConcurrently(Array.from({ length: requests }), clients, work);

/** Reads the whole answer and discards it. Rejects if the status is not 200. */
const drained = (url: string, options: { agent: Agent; headers: Record<string, string> }): Promise<void> =>
  new Promise((resolve, reject) => {
    get(url, options, (answer) => {
      answer.resume().once("end", () => {
        if (answer.statusCode === 200) resolve();
        else reject(new Error(`GET ${url} answered ${answer.statusCode}`));
      });
    }).once("error", reject);
  });
