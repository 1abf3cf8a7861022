/**
 * Measures the processor time of a list of prospects, compared with a plain read of the same rows. Also measures how many lists per second
 * the local service answers.
 */
import { Agent, get } from "node:http";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, QueryCommand } from "@aws-sdk/lib-dynamodb";
import * as keys from "#shared/db/keys.ts";
import { pageText } from "#shared/http/streaming.ts";
import { ListedProspect, listProspects, ProspectPage } from "#shared/prospects/list/list.ts";
import { forgetRows } from "#shared/prospects/list/recent-rows.ts";
import { patient, TABLE } from "../harness/faulty-dynamodb.ts";
import type { Budget } from "./budget.ts";
import { interleaved, median, taken } from "./clock.ts";
import { listQuery } from "./lists.ts";
import type { Stage } from "./stage.ts";
import { startService } from "./started-service.ts";

const PAGE_SIZE = 50;
const WARM_UP = 300;
const REPETITIONS = 15;
/** Number of lists in each repetition. The clock for processor time is too coarse to measure a single list. */
const LISTS = 20;

/**
 * Compares a list in a warm function with one plain Query of the same rows. Both write their results as JSON. Only the list also reads the
 * state of the company's search index, finds the rows of the page among all prospects, converts the rows, and checks the answer against its
 * schema.
 */
export async function listBesideBareReads(stage: Stage, endpoint: string): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const query = { ...listQuery(company, "everything"), pageSize: PAGE_SIZE };
  const again = async () => pageText(ListedProspect, await listProspects(context, caller, query));
  const list = (): Promise<string> => {
    forgetRows(context.table);
    return again();
  };
  const { items } = ProspectPage.parse(JSON.parse(await list()));
  const ids = items.map(({ id }) => id);
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = DynamoDBDocumentClient.from(
    new DynamoDBClient({ endpoint, region: "us-east-1", credentials, ...patient }),
  );
  const { pk, from, upTo } = keys.prospectSpan(company.id, Math.min(...ids), Math.max(...ids));
  const command = () =>
    new QueryCommand({
      TableName: TABLE,
      KeyConditionExpression: "pk = :pk AND sk BETWEEN :from AND :upTo",
      ExpressionAttributeValues: { ":pk": pk, ":from": from, ":upTo": upTo },
    });
  const bare = async () => JSON.stringify((await client.send(command())).Items);
  for (let i = 0; i < WARM_UP; i++) {
    await list();
    await again();
    await bare();
  }
  const times = await interleaved(REPETITIONS, {
    list: () => repeat(LISTS, list),
    again: () => repeat(LISTS, again),
    bare: () => repeat(LISTS, bare),
  });
  const [ours = Number.NaN, inMemory = Number.NaN, theirs = Number.NaN] = [...times.values()].map(
    ({ cpuMs }) => cpuMs / LISTS,
  );
  return [
    figure("processor time of a warm list of 50, milliseconds", ours),
    figure("processor time of a warm list of 50 with its rows in memory, milliseconds", inMemory),
    figure("processor time of a warm list of 50, beside a plain Query of its rows", ours / theirs, 4),
  ];
}

const figure = (text: string, measured: number, limit: number | null = null): Budget => ({
  number: 0,
  text,
  size: "10 k",
  limit,
  measured,
});

async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await work();
}

/**
 * Number of concurrent clients. The local service runs at most four environments of a function. With twice as many clients, a request is
 * already waiting when an environment becomes free. The environments therefore never wait for a client.
 */
const CLIENTS = 8;
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
 * share one machine. The first two results list one page again and again. The last two list many pages in turn.
 */
export async function listRate(): Promise<Budget[]> {
  const service = await startService(["--seed", "10000"], UNTHROTTLED);
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  try {
    const authorization = `Bearer ${await tokenOf(service.url)}`;
    const rowsOf = async (pages: number, which: string): Promise<Budget[]> => {
      let page = 0;
      const list = () => {
        const url = `${service.url}/api/prospects?pageSize=${PAGE_SIZE}&page=${(page++ % pages) + 1}`;
        return drained(url, { agent, headers: { authorization } });
      };
      await concurrently(WARM_UP_REQUESTS, list);
      const rates: number[] = [];
      for (let i = 0; i < RATES; i++) {
        const { wallMs } = await taken(() => concurrently(REQUESTS, list));
        rates.push((1_000 * REQUESTS) / wallMs);
      }
      const rate = median(rates);
      return [
        figure(`lists of 50 a second through the local service, ${which}`, rate),
        figure(`milliseconds for each of these lists, ${which}`, 1_000 / rate, LIST_MS),
      ];
    };
    return [...(await rowsOf(1, "one page again and again")), ...(await rowsOf(PAGES, `${PAGES} pages in turn`))];
  } finally {
    agent.destroy();
    await service.stop();
  }
}

async function tokenOf(url: string): Promise<string> {
  const answer = await fetch(`${url}/local/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "owner@acme.test" }),
  });
  return (await answer.text()).trim();
}

async function concurrently(requests: number, work: () => Promise<void>): Promise<void> {
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

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
