/** Measures the cost of each operation through the whole local service. `npm run cost -- --measure` runs it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { bundle } from "../../../infra/build/bundle.ts";
import { lastNames } from "../../../infra/local/demo/people.ts";
import type { LogLine } from "../../../infra/local/options.ts";
import { type LocalService, startLocal } from "../../../infra/local/service.ts";
import { accessLogLine } from "../../../infra/stack/access-log.ts";
import { proxyEvent } from "../../harness/proxy-event.ts";
import { type HandlerJob, handlerTimes } from "./handler-times.ts";
import { indexCosts } from "./index-costs.ts";
import { functionOf, type Measured, type Operation, operations, type Usage } from "./measured.ts";
import { monthlyResources } from "./monthly-resources.ts";
import { send, type TableUsage } from "./sending.ts";

/**
 * Number of prospects of the measured company. The read and write units of a warm operation do not depend on this number
 * (docs/benchmarks.md).
 */
const PROSPECTS = 10_000;
const CREATES = 3;
/**
 * Number of PATCH requests before the reads. A flush moves the writes into the stored index after `FLUSH_ENTRIES` writes, so a read finds
 * half of this number unflushed on average. Together, the patches and the creates are this half.
 */
const PATCHES = FLUSH_ENTRIES / 2 - CREATES;
const READS = 12;
/** Approximate number of pins in the measured map view. An app would show clusters instead of single pins if there were many more. */
const PINS_IN_VIEW = 1_000;

const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

export async function measure(): Promise<Measured> {
  progress("index of 100 000 prospects");
  const index = await indexCosts();
  progress("local service");
  const lines: LogLine[] = [];
  const service = await startLocal({
    port: 0,
    webhookUrlPolicy: "local",
    timeScale: 1,
    demo: true,
    seed: PROSPECTS,
    onLogLine: (line) => {
      if (isDeployed(line)) lines.push(line);
    },
  });
  const bundles = mkdtempSync(join(tmpdir(), "canvassing-cost-"));
  try {
    const company = await openCompany(service);
    progress("requests");
    const used = await usages(company, lines);
    const background = backgroundLines(service, lines);
    const unchanged = await unchangedView(company);
    progress("processor time");
    await bundle([...new Set(Object.values(functionOf))], bundles);
    const times = await handlerTimes<Operation | Special>(bundles, jobsOf(service, company, unchanged.etag));
    const cpuOf = (operation: Operation | Special): number => times.get(operation)?.warmCpuMs ?? Number.NaN;
    const known = await inMemory(company);
    const usageOf = (operation: Operation): Usage => {
      const usage = used.get(operation);
      if (usage === undefined) throw new Error(`${operation} was not measured`);
      return { ...usage, cpuMs: cpuOf(operation) };
    };
    return {
      date: new Date().toISOString().slice(0, 10),
      operations: {
        pins: usageOf("pins"),
        patch: usageOf("patch"),
        detail: usageOf("detail"),
        list: usageOf("list"),
        search: usageOf("search"),
        create: usageOf("create"),
        authorize: usageOf("authorize"),
      },
      inMemory: {
        list: { ...known.list, cpuMs: cpuOf("listInMemory") },
        search: { ...known.search, cpuMs: cpuOf("searchInMemory") },
      },
      starts: Object.fromEntries(
        operations.map((operation) => {
          const { loadCpuMs = 0, firstCallCpuMs = 0, warmCpuMs = 0 } = times.get(operation) ?? {};
          return [functionOf[operation], { loadCpuMs, firstCallCpuMs: Math.max(0, firstCallCpuMs - warmCpuMs) }];
        }),
      ),
      loads: index.loads,
      background: { ...index.background, ...background },
      notModified: { ...unchanged.usage, cpuMs: cpuOf("unchanged") },
      resources: await monthlyResources(),
      pinsInView: company.pinsInView,
      rowTextBytes: index.rowTextBytes,
      storedBytes: index.storedBytes,
    };
  } finally {
    rmSync(bundles, { recursive: true, force: true });
    await service.stop();
  }
}

const SystemLine = z.object({ type: z.enum(["platform.start", "platform.report"]) });

/**
 * Returns true for log lines that a deployed function writes too. The local service logs each invocation. A deployed function has the
 * system log level WARN, so Lambda logs only failed invocations.
 */
const isDeployed = ({ text }: LogLine): boolean => !SystemLine.safeParse(JSON.parse(text)).success;

/**
 * Requests that are measured in addition to the operations: a map view that is answered with 304, and a list and a search whose prospects
 * are in memory.
 */
type Special = "unchanged" | "listInMemory" | "searchInMemory";

interface Company {
  readonly url: string;
  readonly token: string;
  readonly callerContext: Readonly<Record<string, string>>;
  readonly statusIds: readonly number[];
  readonly prospects: readonly { readonly id: number; readonly statusId: number | undefined }[];
  readonly bbox: string;
  readonly pinsInView: number;
}

const Page = z.object({
  items: z.array(z.object({ id: z.int(), currentStatus: z.nullable(z.object({ id: z.int() })) })),
});
const Statuses = z.array(z.object({ id: z.int() }));
const Me = z.object({ user: z.object({ id: z.int() }), company: z.object({ id: z.int() }) });

async function openCompany(service: LocalService): Promise<Company> {
  const token = await service.tokenOf("owner@acme.test");
  if (token === undefined) throw new Error("the demo company has no owner");
  const { url } = service;
  const ask = async (path: string): Promise<unknown> => JSON.parse((await send(url, token, "GET", path)).text);
  const me = Me.parse(await ask("/api/me"));
  const [statuses, page] = [
    Statuses.parse(await ask("/api/statuses")),
    Page.parse(await ask("/api/prospects?pageSize=500")),
  ];
  const view = await viewOf(
    async (bbox) => z.array(z.unknown()).parse(await ask(`/api/prospects/pins?bbox=${bbox}`)).length,
  );
  return {
    url,
    token,
    callerContext: { companyId: `${me.company.id}`, userId: `${me.user.id}`, rights: "owner" },
    statusIds: statuses.map(({ id }) => id),
    prospects: page.items.map(({ id, currentStatus }) => ({ id, statusId: currentStatus?.id })),
    ...view,
  };
}

/** The centre of the demo company's city. */
const [LAT, LNG] = [39.739, -104.99];

/** Finds a map view with about `PINS_IN_VIEW` pins. It uses a binary search for the size of the view. */
async function viewOf(countOf: (bbox: string) => Promise<number>): Promise<{ bbox: string; pinsInView: number }> {
  let [small, large] = [0, 1];
  let found = { bbox: "", pinsInView: 0 };
  for (let step = 0; step < 12; step++) {
    const half = (small + large) / 2;
    const bbox = [LNG - half, LAT - half, LNG + half, LAT + half].map((degrees) => degrees.toFixed(5)).join();
    found = { bbox, pinsInView: await countOf(bbox) };
    if (found.pinsInView > PINS_IN_VIEW) large = half;
    else small = half;
  }
  return found;
}

/** Number of different pages that are listed. Together, they have more prospects than a function keeps in memory. */
const PAGES = 25;
/**
 * The paths of two lists of 500 prospects. After these lists, a function has none of the measured prospects in memory, because it has
 * evicted them.
 */
const FORGETTING = [19, 20].map((page) => `/api/prospects?pageSize=500&page=${page}`);

/**
 * The paths of the measured reads. Each list and each search returns different prospects, so the function must read them from the table.
 */
const reads = (company: Company) => ({
  pins: `/api/prospects/pins?bbox=${company.bbox}`,
  lists: Array.from({ length: PAGES }, (_, i) => `/api/prospects?page=${i + 1}`),
  searches: lastNames.map((name) => `/api/prospects?search=${encodeURIComponent(name)}`),
});

type Request = readonly [method: string, path: string, body?: unknown];

/**
 * The requests of each operation, in the order in which they are sent. The writes come first, so that the reads find writes that are not
 * yet in the stored index.
 */
function requestsOf(company: Company): Map<Operation, Request[]> {
  const { prospects, statusIds } = company;
  const path = reads(company);
  const prospectAt = (i: number) => prospects[(i * 7) % prospects.length] ?? { id: 0, statusId: undefined };
  const times = (count: number, request: (i: number) => Request): Request[] =>
    Array.from({ length: count }, (_, i) => request(i));
  const statusAt = (i: number): number => statusIds[i % statusIds.length] ?? 0;
  const patch = (i: number): Request => {
    const { id, statusId } = prospectAt(i);
    return ["PATCH", `/api/prospects/${id}`, { currentStatusId: statusIds.find((other) => other !== statusId) }];
  };
  return new Map<Operation, Request[]>([
    ["patch", times(PATCHES, patch)],
    ["create", times(CREATES, (i) => ["POST", "/api/prospects", atTheDoor(statusAt(i))])],
    ["pins", times(WARM_UP + READS, () => ["GET", path.pins])],
    ["detail", times(WARM_UP + READS, (i) => ["GET", `/api/prospects/${prospectAt(i).id}`])],
    ["list", times(WARM_UP + READS, (i) => ["GET", path.lists[i] ?? ""])],
    ["search", times(WARM_UP + READS, (i) => ["GET", path.searches[i] ?? ""])],
    ["authorize", times(WARM_UP + READS, () => ["GET", "/api/prospects?pageSize=1"])],
  ]);
}

const atTheDoor = (currentStatusId: number) => ({
  name: "Maria Garcia",
  phoneNumber: "(303) 555-1234",
  emailAddress: "maria.garcia7@example.com",
  lat: LAT,
  lng: LNG,
  currentStatusId,
});

/** Number of requests before the measured ones. After them, the function is warm and has the index in memory. */
const WARM_UP = 3;

async function usages(company: Company, lines: LogLine[]): Promise<Map<Operation, Usage>> {
  const { url, token } = company;
  const found = new Map<Operation, Usage>();
  for (const [operation, requests] of requestsOf(company)) {
    const warmUps = requests[0]?.[0] === "GET" ? WARM_UP : 0;
    for (const [method, path] of requests.slice(0, warmUps)) await send(url, token, method, path);
    const measured = requests.slice(warmUps);
    await wait(500);
    const from = lines.length;
    let sentBytes = 0;
    let accessLogBytes = 0;
    const tables: TableUsage[] = [];
    for (const [method, path, body] of measured) {
      if (operation === "authorize") await fetch(`${url}/local/authorizers-cache`, { method: "DELETE" });
      if (operation === "list" || operation === "search")
        for (const other of FORGETTING) await send(url, token, "GET", other);
      const answer = await send(url, token, method, path, { body });
      if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
      sentBytes += answer.bytes;
      accessLogBytes += accessLogLine({ method, resource: resourceOf(path), bytes: answer.bytes }).length;
      tables.push(operation === "authorize" ? SIGN_IN : answer.table);
    }
    await wait(500);
    const own = lines.slice(from).filter(({ file }) => file === functionOf[operation]);
    const count = measured.length;
    found.set(operation, {
      ...meanUsage(tables),
      sentBytes: sentBytes / count,
      logLines: own.length / count,
      logBytes: own.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0) / count,
      accessLogBytes: accessLogBytes / count,
      cpuMs: 0,
    });
  }
  return found;
}

/** The usage of the authorizer: it reads one row (test/auth/directory.test.ts checks this). */
const SIGN_IN: TableUsage = { readUnits: 1, writeUnits: 0, rounds: 1 };

const resourceOf = (path: string): string => path.replace(/\?.*/, "").replace(/\d+$/, "{id}");

function meanUsage(all: readonly TableUsage[]): TableUsage {
  const mean = (of: (one: TableUsage) => number): number => all.reduce((sum, one) => sum + of(one), 0) / all.length;
  return {
    readUnits: mean(({ readUnits }) => readUnits),
    writeUnits: mean(({ writeUnits }) => writeUnits),
    rounds: mean(({ rounds }) => rounds),
  };
}

/** Measures a list and a search whose prospects are in memory. It sends each of them twice and returns the usage of the second request. */
async function inMemory(company: Company): Promise<Record<"list" | "search", Omit<TableUsage, "writeUnits">>> {
  const { url, token } = company;
  const second = async (path = "") => {
    await send(url, token, "GET", path);
    const { readUnits, rounds } = (await send(url, token, "GET", path)).table;
    return { readUnits, rounds };
  };
  const { lists, searches } = reads(company);
  return { list: await second(lists[0]), search: await second(searches[0]) };
}

function backgroundLines(service: LocalService, lines: readonly LogLine[]) {
  const invocations = service.invocations();
  const of = (file: string): { lines: number; bytes: number } => {
    const own = lines.filter((line) => line.file === file);
    const calls = Math.max(1, invocations[file] ?? 0);
    return { lines: own.length / calls, bytes: own.reduce((sum, { text }) => sum + text.length, 0) / calls };
  };
  const [publish, flush] = [of("events/publish"), of("index/flush")];
  return { publishLines: publish.lines, publishBytes: publish.bytes, flushLines: flush.lines, flushBytes: flush.bytes };
}

/** Requests a map view, and then requests it again with the ETag of the first answer. Returns the usage of the second request. */
async function unchangedView(company: Company) {
  const { url, token } = company;
  const path = reads(company).pins;
  const { etag = "" } = await send(url, token, "GET", path);
  const { bytes, table } = await send(url, token, "GET", path, { etag });
  return { etag, usage: { readUnits: table.readUnits, rounds: table.rounds, sentBytes: bytes } };
}

function jobsOf(service: LocalService, company: Company, etag: string): Map<Operation | Special, HandlerJob> {
  const { outputs } = service;
  const environment = {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_ENDPOINT_URL_DYNAMODB: outputs.DynamoDbEndpoint,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "2048",
    TABLE_NAME: outputs.TableName,
    ISSUER: outputs.Issuer,
    AUDIENCE: outputs.Audience,
    LOG_LEVEL: "error",
    THROTTLE_KEY_PREFIX: "cost",
  };
  const path = reads(company);
  const event = (method: string, path: string, body?: unknown): object => eventOf(company, method, path, body);
  const [patched, read] = company.prospects.map(({ id }) => `/api/prospects/${id}`);
  const patches = company.statusIds
    .slice(0, 2)
    .map((currentStatusId) => event("PATCH", patched ?? "", { currentStatusId }));
  const events: Record<Operation, readonly object[]> = {
    pins: [event("GET", path.pins)],
    patch: patches,
    detail: [event("GET", read ?? "")],
    list: path.lists.map((path) => event("GET", path)),
    search: path.searches.map((path) => event("GET", path)),
    create: [event("POST", "/api/prospects", atTheDoor(company.statusIds[0] ?? 0))],
    authorize: [
      {
        type: "TOKEN",
        authorizationToken: `Bearer ${company.token}`,
        methodArn: "arn:aws:execute-api:r:1:a/live/GET/",
      },
    ],
  };
  const jobs = new Map<Operation | Special, HandlerJob>(
    operations.map((operation) => [operation, { file: functionOf[operation], events: events[operation], environment }]),
  );
  const [list, search] = [events.list, events.search].map((all) => all.slice(0, 1));
  jobs.set("listInMemory", { file: functionOf.list, events: list ?? [], environment });
  jobs.set("searchInMemory", { file: functionOf.search, events: search ?? [], environment });
  return jobs.set("unchanged", {
    file: functionOf.pins,
    events: [eventOf(company, "GET", path.pins, undefined, { "If-None-Match": [etag] })],
    environment,
  });
}

function eventOf(
  { callerContext }: Company,
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, readonly string[]>> = {},
): object {
  const base = proxyEvent(callerContext);
  const { pathname, searchParams } = new URL(path, "http://x");
  const [, id] = /\/(\d+)$/.exec(pathname) ?? [];
  const resource = resourceOf(path);
  return {
    ...base,
    httpMethod: method,
    path: pathname,
    resource,
    multiValueHeaders: {
      ...base.multiValueHeaders,
      "Content-Type": ["application/json"],
      "Accept-Encoding": ["gzip"],
      ...headers,
    },
    headers: { "Content-Type": "application/json" },
    multiValueQueryStringParameters: Object.fromEntries([...searchParams].map(([name, value]) => [name, [value]])),
    pathParameters: id === undefined ? null : { id },
    requestContext: { ...base.requestContext, httpMethod: method, path: pathname, resourcePath: resource },
    body: body === undefined ? null : JSON.stringify(body),
  };
}
