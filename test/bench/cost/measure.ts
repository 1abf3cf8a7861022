/** Measures the cost of each operation through the whole local service. `npm run cost -- --measure` runs it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { FLUSH_ENTRIES } from "#shared/company-index/write/flush.ts";
import { bundle } from "../../../infra/build/bundle.ts";
import { lastNames } from "../../../infra/local/demo/people.ts";
import { type LocalService, startLocal } from "../../../infra/local/service.ts";
import { proxyEvent } from "../../harness/proxy-event.ts";
import { inOwnProcess } from "../own-process.ts";
import { indexCosts } from "./index-costs.ts";
import { functionOf, Measured, type Operation, operations } from "./measured.ts";
import { monthlyResources } from "./monthly-resources.ts";
import { type Answer, resourceOf, type Sent, sendTo } from "./sending.ts";

/** Prospects of the measured company. A small company suffices, because the units of a warm operation do not depend on its size. */
const PROSPECTS = 10_000;
const CREATES = 3;
/**
 * A flush begins after `FLUSH_ENTRIES` writes, so a read finds half of this number unflushed on average: `PATCHES` and `CREATES` together.
 */
const PATCHES = FLUSH_ENTRIES / 2 - CREATES;
/** After these requests, the function is warm and has the index in memory. */
const WARM_UP = 3;
const READS = 12;
/**
 * Pages that are listed. Together, they have more prospects than a function keeps in memory, so each list reads its rows from the table.
 */
const PAGES = 25;
/** The centre of the demo company's city, and half the width of a map view with about 1 000 pins. Apps show more pins as clusters. */
const [LAT, LNG, HALF_VIEW] = [39.739, -104.99, 0.025];
const VIEW = [LNG - HALF_VIEW, LAT - HALF_VIEW, LNG + HALF_VIEW, LAT + HALF_VIEW]
  .map((degrees) => degrees.toFixed(5))
  .join();

const progress = (text: string): void => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);

export async function measure(): Promise<Measured> {
  progress("index of 100 000 prospects");
  const index = await indexCosts();
  progress("local service");
  const service = await startLocal({ port: 0, webhookUrlPolicy: "local", timeScale: 1, demo: true, seed: PROSPECTS });
  const bundles = mkdtempSync(join(tmpdir(), "canvassing-cost-"));
  try {
    const company = await openCompany(service);
    progress("requests");
    const used = await usages(company, service.url);
    const pins = at(company.requests.pins, 0);
    const view = await company.send(pins);
    const unchanged = await company.send({ ...pins, etag: view.etag });
    progress("processor time");
    await bundle([...new Set(Object.values(functionOf))], bundles);
    const times = await handlerTimes(bundles, service, company);
    return Measured.parse({
      date: new Date().toISOString().slice(0, 10),
      operations: Object.fromEntries(
        operations.map((name) => [name, { ...used.get(name), cpuMs: times.get(name)?.warmCpuMs }]),
      ),
      starts: Object.fromEntries(operations.map((name) => [functionOf[name], times.get(name)?.startCpuMs])),
      loads: index.loads,
      notModifiedBytes: unchanged.usage.sentBytes,
      resources: await monthlyResources(),
      pinsInView: z.array(z.unknown()).parse(JSON.parse(view.text)).length,
      storedBytes: index.storedBytes,
    });
  } finally {
    rmSync(bundles, { recursive: true, force: true });
    await service.stop();
  }
}

type Requests = Readonly<Record<Operation, readonly Sent[]>>;

const Page = z.object({
  items: z.array(z.object({ id: z.int(), currentStatus: z.nullable(z.object({ id: z.int() })) })),
});
const Statuses = z.array(z.object({ id: z.int() }));
const Me = z.object({ user: z.object({ id: z.int() }), company: z.object({ id: z.int() }) });

async function openCompany(service: LocalService) {
  const token = await service.tokenOf("owner@acme.test");
  if (token === undefined) throw new Error("the demo company has no owner");
  const send = sendTo(service.url, token);
  const ask = async (path: string): Promise<unknown> => JSON.parse((await send({ method: "GET", path })).text);
  const me = Me.parse(await ask("/api/me"));
  const statuses = Statuses.parse(await ask("/api/statuses"));
  const { items } = Page.parse(await ask("/api/prospects?pageSize=500"));
  const callerContext = { companyId: `${me.company.id}`, userId: `${me.user.id}`, rights: "owner" };
  return { send, token, callerContext, requests: requestsOn(items, statuses) };
}
type Company = Awaited<ReturnType<typeof openCompany>>;

/** Returns the measured requests. Each list and each search has other prospects, so the function must read them from the table. */
function requestsOn(items: z.infer<typeof Page>["items"], statuses: z.infer<typeof Statuses>): Requests {
  const get = (path: string): Sent => ({ method: "GET", path });
  const prospectAt = (i: number) => at(items, (i * 7) % items.length);
  // The first half of the requests changes the status of each prospect, and the second half restores it. Each PATCH is therefore a change,
  // however often the requests are repeated.
  const patch = (i: number): Sent => {
    const { id, currentStatus } = prospectAt(i % PATCHES);
    const other = statuses.find((status) => status.id !== currentStatus?.id)?.id;
    const currentStatusId = i < PATCHES ? other : (currentStatus?.id ?? null);
    return { method: "PATCH", path: `/api/prospects/${id}`, body: { currentStatusId } };
  };
  const atTheDoor = {
    ...{ name: "Maria Garcia", phoneNumber: "(303) 555-1234", emailAddress: "maria.garcia7@example.com" },
    ...{ lat: LAT, lng: LNG, currentStatusId: at(statuses, 0).id },
  };
  return {
    patch: some(2 * PATCHES, patch),
    create: some(CREATES, () => ({ method: "POST", path: "/api/prospects", body: atTheDoor })),
    pins: some(WARM_UP + READS, () => get(`/api/prospects/pins?bbox=${VIEW}`)),
    detail: some(WARM_UP + READS, (i) => get(`/api/prospects/${prospectAt(i).id}`)),
    list: some(PAGES, (i) => get(`/api/prospects?page=${i + 1}`)),
    search: some(WARM_UP + READS, (i) => get(`/api/prospects?search=${at(lastNames, i)}`)),
    authorize: some(WARM_UP + READS, () => get("/api/prospects?pageSize=1")),
  };
}

const some = (count: number, of: (i: number) => Sent): Sent[] => Array.from({ length: count }, (_, i) => of(i));

/** Lists of 500 prospects, after which a function has evicted all measured prospects from its memory. */
const FORGETTING = [19, 20].map((page) => `/api/prospects?pageSize=500&page=${page}`);

/** The writes come first, so that the reads find writes that are not yet in the stored index. */
const ORDER: readonly Operation[] = ["patch", "create", "pins", "detail", "list", "search", "authorize"];

/** The usage of one call of the authorizer: it reads one row (test/reference/invitations.test.ts checks this). */
const SIGN_IN = { readUnits: 1, writeUnits: 0, rounds: 1 };

type Wire = Answer["usage"];

async function usages({ send, requests }: Company, url: string): Promise<ReadonlyMap<Operation, Wire>> {
  const used = new Map<Operation, Wire>();
  for (const operation of ORDER) {
    const warmUps = at(requests[operation], 0).method === "GET" ? WARM_UP : 0;
    for (const sent of requests[operation].slice(0, warmUps)) await send(sent);
    const all: Wire[] = [];
    for (const sent of requests[operation].slice(warmUps, warmUps + (operation === "patch" ? PATCHES : READS))) {
      if (operation === "authorize") await fetch(`${url}/local/authorizers-cache`, { method: "DELETE" });
      if (operation === "list" || operation === "search")
        for (const path of FORGETTING) await send({ method: "GET", path });
      const { usage } = await send(sent);
      all.push({ ...usage, ...(operation === "authorize" && SIGN_IN) });
    }
    used.set(operation, meanOf(all));
  }
  return used;
}

function meanOf(all: readonly Wire[]): Wire {
  const mean = (name: keyof Wire): number => all.reduce((sum, one) => sum + one[name], 0) / all.length;
  return {
    readUnits: mean("readUnits"),
    writeUnits: mean("writeUnits"),
    rounds: mean("rounds"),
    sentBytes: mean("sentBytes"),
    accessLogBytes: mean("accessLogBytes"),
  };
}

const HandlerTimes = z.object({ startCpuMs: z.number(), warmCpuMs: z.number() });
type HandlerTimes = z.infer<typeof HandlerTimes>;
const HANDLER_WARM_UP = 60;
const HANDLER_CALLS = 60;
/** Number of new processes for each operation. The minimum of their times counts, because other load can only make a process slower. */
const PROCESSES = 3;

async function handlerTimes(bundles: string, { outputs }: LocalService, company: Company) {
  const env = {
    ...{ PATH: process.env.PATH, AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" },
    ...{ AWS_ENDPOINT_URL_DYNAMODB: outputs.DynamoDbEndpoint, TABLE_NAME: outputs.TableName },
    ...{ ISSUER: outputs.Issuer, AUDIENCE: outputs.Audience, LOG_LEVEL: "error", THROTTLE_KEY_PREFIX: "cost" },
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "2048",
  };
  const times = new Map<Operation, HandlerTimes>();
  for (const name of operations) {
    const file = pathToFileURL(join(bundles, functionOf[name], "index.mjs")).href;
    const events = eventsOf(name, company);
    const job = { bundle: file, events, warmUp: HANDLER_WARM_UP, calls: HANDLER_CALLS };
    const runs: HandlerTimes[] = [];
    for (let run = 0; run < PROCESSES; run++) {
      runs.push(HandlerTimes.parse(await inOwnProcess("cost/handler-process.ts", job, { env })));
    }
    const least = (of: keyof HandlerTimes): number => Math.min(...runs.map((run) => run[of]));
    times.set(name, { startCpuMs: least("startCpuMs"), warmCpuMs: least("warmCpuMs") });
  }
  return times;
}

function eventsOf(name: Operation, { token, callerContext, requests }: Company): readonly object[] {
  if (name === "authorize") {
    const methodArn = "arn:aws:execute-api:r:1:a/live/GET/";
    return [{ type: "TOKEN", authorizationToken: `Bearer ${token}`, methodArn }];
  }
  return requests[name].map((sent) => eventOf(callerContext, sent));
}

function eventOf(callerContext: Company["callerContext"], { method, path, body }: Sent): object {
  const base = proxyEvent(callerContext);
  const { pathname, searchParams } = new URL(path, "http://x");
  const [, id] = /\/(\d+)$/.exec(pathname) ?? [];
  const resource = resourceOf(path);
  const headers = { "Content-Type": ["application/json"], "Accept-Encoding": ["gzip"] };
  return {
    ...base,
    httpMethod: method,
    path: pathname,
    resource,
    multiValueHeaders: { ...base.multiValueHeaders, ...headers },
    headers: { "Content-Type": "application/json" },
    multiValueQueryStringParameters: Object.fromEntries([...searchParams].map(([key, value]) => [key, [value]])),
    pathParameters: id === undefined ? null : { id },
    requestContext: { ...base.requestContext, httpMethod: method, path: pathname, resourcePath: resource },
    body: body === undefined ? null : JSON.stringify(body),
  };
}
