/** Measures the cost of each operation through the whole local service. `npm run cost -- --measure` runs it. */
import { mkdtempSync, rmSync } from "node:fs";
import { get, request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import * as z from "zod/mini";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { bundle } from "../../../infra/build/bundle.ts";
import type { LogLine } from "../../../infra/local/options.ts";
import { type LocalService, startLocal } from "../../../infra/local/service.ts";
import { accessLogLine } from "../../../infra/stack/access-log.ts";
import { proxyEvent } from "../../harness/proxy-event.ts";
import { synthesized } from "../../infra/template.ts";
import { type HandlerJob, handlerTimes } from "./handler-times.ts";
import { indexCosts } from "./index-costs.ts";
import { functionOf, type Measured, type Operation, operations, type Usage } from "./measured.ts";

/** Prospects of the measured company. The table's units of a warm operation do not depend on this number (docs/benchmarks.md). */
const PROSPECTS = 10_000;
const CREATES = 3;
/** Half of the writes that start a flush of the index, which is the mean number of unflushed writes that a read meets. */
const PATCHES = FLUSH_ENTRIES / 2 - CREATES;
const READS = 12;
/** Pins of one view of the map. A phone shows about this many before it has to cluster them. */
export const PINS_IN_VIEW = 1_000;

const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

const RequestLine = z.object({
  message: z.object({
    event: z.literal("request"),
    readUnits: z.optional(z.number()),
    writeUnits: z.optional(z.number()),
    rounds: z.optional(z.number()),
  }),
});

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
    const unchanged = await unchangedView(company, lines);
    progress("processor time");
    await bundle([...new Set(Object.values(functionOf))], bundles);
    const times = await handlerTimes<Operation | "unchanged">(bundles, jobsOf(service, company, unchanged.etag));
    const cpuOf = (operation: Operation): number => times.get(operation)?.warmCpuMs ?? Number.NaN;
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
      starts: Object.fromEntries(
        operations.map((operation) => {
          const { loadCpuMs = 0, firstCallCpuMs = 0, warmCpuMs = 0 } = times.get(operation) ?? {};
          return [functionOf[operation], { loadCpuMs, firstCallCpuMs: Math.max(0, firstCallCpuMs - warmCpuMs) }];
        }),
      ),
      loads: index.loads,
      background: { ...index.background, ...background },
      notModified: { ...unchanged.usage, cpuMs: times.get("unchanged")?.warmCpuMs ?? Number.NaN },
      resources: await monthlyResources(),
      pinsInView: company.pinsInView,
      storedBytes: index.storedBytes,
    };
  } finally {
    rmSync(bundles, { recursive: true, force: true });
    await service.stop();
  }
}

const SystemLine = z.object({ type: z.enum(["platform.start", "platform.report"]) });

/** The local service also logs each invocation. A deployed function with the system log level WARN logs only failed ones. */
const isDeployed = ({ text }: LogLine): boolean => !SystemLine.safeParse(JSON.parse(text)).success;

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

/** The middle of the city of the demo company. */
const [LAT, LNG] = [39.739, -104.99];

/** Finds a map view with about PINS_IN_VIEW pins by halving the interval of its size. */
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

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly bytes: number;
  readonly etag: string | undefined;
}

/** Headers that only the local service sends. */
const LOCAL_HEADERS = new Set(["server-timing", "keep-alive"]);

interface Sending {
  readonly body?: unknown;
  readonly etag?: string;
}

function send(url: string, token: string, method: string, path: string, { body, etag }: Sending = {}): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    "accept-encoding": "gzip",
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(etag !== undefined && { "if-none-match": etag }),
  };
  return new Promise((resolve, reject) => {
    const sent = (method === "GET" ? get : httpRequest)(`${url}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => {
        const whole = Buffer.concat(chunks);
        const text = (response.headers["content-encoding"] === "gzip" ? gunzipSync(whole) : whole).toString();
        resolve({
          status: response.statusCode ?? 0,
          text,
          bytes: headBytes(response) + whole.length,
          etag: response.headers.etag,
        });
      });
      response.once("error", reject);
    });
    sent.once("error", reject);
    if (method !== "GET") sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function headBytes({ rawHeaders, statusMessage = "" }: IncomingMessage): number {
  let bytes = "HTTP/1.1 200 \r\n\r\n".length + statusMessage.length;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
    if (!LOCAL_HEADERS.has(name.toLowerCase())) bytes += name.length + value.length + ": \r\n".length;
  }
  return bytes;
}

const reads = (company: Company): Record<"pins" | "list" | "search", string> => ({
  pins: `/api/prospects/pins?bbox=${company.bbox}`,
  list: "/api/prospects",
  search: "/api/prospects?search=garcia",
});

type Request = readonly [method: string, path: string, body?: unknown];

/** The measured requests of each operation, in the order in which they are sent: writes first, so that reads meet unflushed writes. */
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
    ["pins", times(READS, () => ["GET", path.pins])],
    ["detail", times(READS, (i) => ["GET", `/api/prospects/${prospectAt(i).id}`])],
    ["list", times(READS, () => ["GET", path.list])],
    ["search", times(READS, () => ["GET", path.search])],
    ["authorize", times(READS, () => ["GET", "/api/prospects?pageSize=1"])],
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

/** Requests before the measured ones, so that functions are warm and have the index in memory. */
const WARM_UP = 3;

async function usages(company: Company, lines: LogLine[]): Promise<Map<Operation, Usage>> {
  const { url, token } = company;
  const found = new Map<Operation, Usage>();
  for (const [operation, requests] of requestsOf(company)) {
    const isWrite = requests[0]?.[0] !== "GET";
    for (const [method, path] of isWrite ? [] : requests.slice(0, WARM_UP)) await send(url, token, method, path);
    await wait(500);
    const from = lines.length;
    let sentBytes = 0;
    let accessLogBytes = 0;
    for (const [method, path, body] of requests) {
      if (operation === "authorize") await fetch(`${url}/local/authorizers-cache`, { method: "DELETE" });
      const answer = await send(url, token, method, path, { body });
      if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
      sentBytes += answer.bytes;
      accessLogBytes += accessLogLine({ method, resource: resourceOf(path), bytes: answer.bytes }).length;
    }
    await wait(500);
    const own = lines.slice(from).filter(({ file }) => file === functionOf[operation]);
    found.set(operation, usageIn(own, requests.length, { sentBytes, accessLogBytes }));
  }
  return found;
}

/** The authorizer logs no successful sign-in. It reads one row (test/auth/directory.test.ts). */
const SIGN_IN = { event: "request", readUnits: 1, writeUnits: 0, rounds: 1 } as const;

const resourceOf = (path: string): string => path.replace(/\?.*/, "").replace(/\d+$/, "{id}");

function usageIn(own: readonly LogLine[], count: number, sums: { sentBytes: number; accessLogBytes: number }): Usage {
  const facts = own.flatMap(({ text }) => {
    const parsed = RequestLine.safeParse(JSON.parse(text));
    return parsed.success ? [parsed.data.message] : [];
  });
  if (facts.length === 0 && own.every(({ file }) => file === functionOf.authorize)) facts.push(SIGN_IN);
  else if (facts.length < count) throw new Error(`${facts.length} of ${count} requests are in the log`);
  const mean = (of: (fact: (typeof facts)[number]) => number | undefined): number =>
    facts.reduce((sum, fact) => sum + (of(fact) ?? 0), 0) / facts.length;
  return {
    readUnits: mean(({ readUnits }) => readUnits),
    writeUnits: mean(({ writeUnits }) => writeUnits),
    rounds: mean(({ rounds }) => rounds),
    sentBytes: sums.sentBytes / count,
    logLines: own.length / count,
    logBytes: own.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0) / count,
    accessLogBytes: sums.accessLogBytes / count,
    cpuMs: 0,
  };
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

/** Sends a view of the map again with the ETag of its answer. */
async function unchangedView(company: Company, lines: LogLine[]) {
  const { url, token } = company;
  const path = reads(company).pins;
  const { etag = "" } = await send(url, token, "GET", path);
  const from = lines.length;
  const answer = await send(url, token, "GET", path, { etag });
  await wait(500);
  const own = lines.slice(from).filter(({ file }) => file === functionOf.pins);
  const { readUnits, rounds } = usageIn(own, 1, { sentBytes: 0, accessLogBytes: 0 });
  return { etag, usage: { readUnits, rounds, sentBytes: answer.bytes } };
}

/** Counts what the production preset deploys and what costs dollars by the month. */
async function monthlyResources(): Promise<Measured["resources"]> {
  const template = await synthesized();
  const count = (type: string): number => template.all(type).length;
  return {
    alarms: count("AWS::CloudWatch::Alarm"),
    metrics: count("AWS::Logs::MetricFilter"),
    dashboards: count("AWS::CloudWatch::Dashboard"),
    keys: count("AWS::KMS::Key"),
  };
}

function jobsOf(service: LocalService, company: Company, etag: string): Map<Operation | "unchanged", HandlerJob> {
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
    list: [event("GET", path.list)],
    search: [event("GET", path.search)],
    create: [event("POST", "/api/prospects", atTheDoor(company.statusIds[0] ?? 0))],
    authorize: [
      {
        type: "TOKEN",
        authorizationToken: `Bearer ${company.token}`,
        methodArn: "arn:aws:execute-api:r:1:a/live/GET/",
      },
    ],
  };
  const jobs = new Map<Operation | "unchanged", HandlerJob>(
    operations.map((operation) => [operation, { file: functionOf[operation], events: events[operation], environment }]),
  );
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
