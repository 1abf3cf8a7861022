/**
 * Tests that the last release and this one run at the same time on one table, as during a deployment: both serve requests, publish changes,
 * flush the index and deliver webhooks. Also tests a rollback: the last release reads and changes rows that bulk jobs and devices have
 * written with this release. Afterwards, this release continues with these rows.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { shapeOfProspect } from "#shared/prospects/stored.ts";
import { root } from "../../infra/build/bundle.ts";
import { lastRelease } from "../../infra/release/releases.ts";
import { startReceiver } from "../harness/receiver.ts";
import { codeOfLastRelease, hasHistory } from "./release-code.ts";

const data = mkdtempSync(join(tmpdir(), "canvassing-releases-"));
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(data, { recursive: true, force: true });
});

interface Service {
  readonly url: string;
  kill(): Promise<void>;
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const outputsOf = async ({ url }: Service) => Outputs.parse(await (await fetch(`${url}/local/outputs`)).json());
const Identified = z.object({ id: z.number() });
const Page = z.object({ total: z.number() });
const Me = z.object({ company: Identified });
const Status = z.array(Identified);

async function start(folder: string, dataDir: string, env: Record<string, string>): Promise<Service> {
  const child = spawn(process.execPath, ["infra/local/start.ts"], {
    cwd: folder,
    env: { ...process.env, PORT: "0", DATA_DIR: dataDir, LOCAL_TIME_SCALE: "60", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^ready (\S+)$/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const kill = (): Promise<void> => {
      child.kill("SIGKILL");
      return ended;
    };
    return { ...(await serviceAt(url)), kill };
  }
  throw new Error(`the service of ${folder} ended before it was ready`);
}

async function serviceAt(url: string): Promise<Omit<Service, "kill">> {
  const signIn = await fetch(`${url}/local/token`, {
    method: "POST",
    body: JSON.stringify({ email: "admin@acme.test" }),
  });
  const headers = { Authorization: `Bearer ${(await signIn.text()).trim()}`, "Content-Type": "application/json" };
  return {
    url,
    async call(method, path, body) {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path} at ${url}: ${answer.status} ${text}`);
      return text === "" ? undefined : JSON.parse(text);
    },
  };
}

async function command(service: Service, ...args: string[]): Promise<string> {
  const env = { ...process.env, PORT: new URL(service.url).port };
  return (await promisify(execFile)(process.execPath, args, { cwd: root, env })).stdout;
}

const Results = z.object({ results: z.array(z.object({ outcome: z.string(), id: z.number() })) });
const Changes = z.object({
  cursor: z.string(),
  hasMore: z.boolean(),
  items: z.array(z.object({ id: z.number(), op: z.enum(["upsert", "remove"]), data: z.optional(z.unknown()) })),
});

async function pages(service: Service, cursor: string | undefined, known: Map<number, unknown>): Promise<string> {
  const query = cursor === undefined ? "?types=prospects" : `?cursor=${encodeURIComponent(cursor)}`;
  const page = Changes.parse(await service.call("GET", `/api/changes${query}`));
  for (const { id, op, data } of page.items) {
    if (op === "upsert") known.set(id, data);
    else known.delete(id);
  }
  return page.hasMore ? pages(service, page.cursor, known) : page.cursor;
}

const snapshotEnd = (service: Service): Promise<string> => pages(service, undefined, new Map());

/**
 * Returns the records that a client has after it has requested the changes since the cursor. The last release writes no change log. If it
 * has flushed the index since the cursor was made, these changes are unknown. The service then answers 410, and the client loads a snapshot
 * of all records.
 */
async function knownSince(service: Service, cursor: string): Promise<ReadonlyMap<number, unknown>> {
  const known = new Map<number, unknown>();
  try {
    await pages(service, cursor, known);
  } catch (error) {
    expect(String(error)).toContain(": 410 ");
    await pages(service, undefined, known);
  }
  return known;
}

const uuid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const DEVICE_OPERATIONS = 25;
const POLL = { timeout: 120_000, interval: 100 };

const WORKERS = 3;
const ROUNDS = 3;
/** Time limit in milliseconds. It is long, because two services start one after the other. */
const TIMEOUT_MS = 240_000;

describe.skipIf(!hasHistory())(`release ${lastRelease().version} and this one on one table`, () => {
  let old: Service;
  let current: Service;
  let tableName: string;
  let endpoint: string;
  const [oldData, newData] = [join(data, "old"), join(data, "new")];
  const startCurrent = (): Promise<Service> =>
    start(root, newData, { DYNAMODB_ENDPOINT: endpoint, LOCAL_PROSPECT_SHAPE: "1" });
  beforeAll(async () => {
    old = await start(codeOfLastRelease(), oldData, {});
    ({ TableName: tableName, DynamoDbEndpoint: endpoint } = await outputsOf(old));
    // Both services need the same keys for webhook secrets, so the new one gets a copy of the file with the keys. Because of the file
    // `complete`, it does not load demo data.
    mkdirSync(newData);
    for (const file of ["encryption-keys.json", "complete"]) copyFileSync(join(oldData, file), join(newData, file));
    current = await startCurrent();
    expect((await outputsOf(current)).TableName).toBe(tableName);
  }, TIMEOUT_MS);

  const faultsOf = async (company: number) => [
    await command(current, "infra/cli/company-index.ts", "verify", "--company", String(company)),
    await command(current, "infra/cli/webhooks.ts", "reconcile", "--company", String(company)),
  ];

  test("both serve requests, publish changes, flush the index and deliver webhooks", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const receiver = await startReceiver();
    for (const [service, event] of [
      [old, "prospect.created"],
      [current, "prospect.updated"],
    ] as const) {
      await service.call("POST", "/api/webhooks", { name: event, url: receiver.url, registrations: [{ event }] });
    }
    const [first, second] = Status.parse(await old.call("GET", "/api/statuses"));
    const statuses = [first?.id, second?.id];
    const before = Page.parse(await current.call("GET", "/api/prospects?pageSize=1")).total;

    const ids: number[] = [];
    const work = Array.from({ length: WORKERS }, async (_, worker) => {
      for (let round = 0; round < ROUNDS; round++) {
        const [one, other] = (worker + round) % 2 === 0 ? [old, current] : [current, old];
        const { id } = Identified.parse(await one.call("POST", "/api/prospects", { name: `W${worker}-${round}` }));
        ids.push(id);
        for (const [i, service] of [other, one, other].entries()) {
          await service.call("PATCH", `/api/prospects/${id}`, { currentStatusId: statuses[i % 2] });
          const body = { address: { address1: `${i} Elm St`, city: "Denver", state: "CO", zip: "80203" } };
          await service.call("PATCH", `/api/prospects/${id}`, body);
          await service.call("POST", `/api/prospects/${id}/notes`, {
            body: `Note ${i} about the roof of W${worker}-${round}`,
          });
        }
        expect(await current.call("GET", `/api/prospects/${id}`)).toMatchObject(
          Object(await old.call("GET", `/api/prospects/${id}`)),
        );
      }
    });
    await Promise.all(work);

    const created = WORKERS * ROUNDS;
    const updated = created * 6;
    for (const path of [
      "/api/prospects?pageSize=50",
      "/api/prospects?search=elm&pageSize=50",
      "/api/prospects?search=roof",
    ]) {
      expect(await current.call("GET", path)).toMatchObject(Object(await old.call("GET", path)));
    }
    for (const service of [old, current]) {
      expect(Page.parse(await service.call("GET", "/api/prospects?pageSize=1")).total).toBe(before + created);
    }
    await receiver.until(created + updated);
    await wait(1_000);
    const events = receiver.receipts.map(({ event }) => event);
    expect(new Set(events.map(({ id }) => id)).size).toBe(created + updated);
    expect(events).toHaveLength(created + updated);
    expect(events.filter(({ event }) => event === "prospect.created")).toHaveLength(created);

    const company = Me.parse(await current.call("GET", "/api/me")).company.id;
    expect(await faultsOf(company)).toEqual([
      expect.stringContaining(" 0 faults"),
      expect.stringMatching(/faults +0\n/),
    ]);
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const table = openTable(tableName, dynamoClient({ endpoint, region: "us-east-1", credentials }));
    const rows = await table.batchGet(ids.map((id) => keys.prospect(company, id)));
    expect(rows.map(shapeOfProspect)).toEqual(ids.map(() => 1));
    await receiver.close();
  });

  test("the last release reads and changes what bulk jobs and devices wrote, and this one continues", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const receiver = await startReceiver();
    const registrations = [{ event: "prospect.updated" }, { event: "prospect.deleted", delayMinutes: 1 }];
    await current.call("POST", "/api/webhooks", { name: "rollback", url: receiver.url, registrations });
    const [first, second] = Status.parse(await old.call("GET", "/api/statuses"));
    const operations = Array.from({ length: DEVICE_OPERATIONS }, (_, i) => ({
      opId: uuid(i),
      type: "prospect.create",
      clientRecordId: uuid(1_000 + i),
      fields: { name: `Device ${i}`, currentStatusId: first?.id },
    }));
    const send = async () =>
      Results.parse(await current.call("POST", "/api/sync/operations", { deviceId: "phone", operations })).results;
    const ids = (await send()).map(({ id }) => id);
    const bulk = { ids, action: { set: { currentStatusId: second?.id } }, events: "each" };
    const job = Identified.parse(await current.call("POST", "/api/prospects/bulk", bulk)).id;
    const cursor = await snapshotEnd(current);
    await expect.poll(() => current.call("GET", `/api/jobs/${job}`), POLL).toMatchObject({ state: "completed" });

    // This release is stopped here, so only the last release runs. Some events of the job may still wait for their delivery.
    await current.kill();
    for (const id of ids) {
      expect(await old.call("GET", `/api/prospects/${id}`)).toMatchObject({ currentStatus: { id: second?.id } });
      for (const status of [first, second, first]) {
        await old.call("PATCH", `/api/prospects/${id}`, { currentStatusId: status?.id });
      }
    }
    const [gone = 0, ...kept] = ids;
    await old.call("DELETE", `/api/prospects/${gone}`);
    current = await startCurrent();
    const search = "/api/prospects?search=device&pageSize=50";
    expect(await current.call("GET", search)).toMatchObject(Object(await old.call("GET", search)));

    expect((await send()).map(({ outcome, id }) => ({ outcome, id }))).toEqual(
      ids.map((id) => ({ outcome: "duplicate", id })),
    );
    const undo = Identified.parse(await current.call("POST", `/api/jobs/${job}/undo`, {})).id;
    await expect
      .poll(() => current.call("GET", `/api/jobs/${undo}`), POLL)
      .toMatchObject({ state: "completed", changed: 0, skipped: ids.length });
    const known = await knownSince(current, cursor);
    expect(known.get(gone)).toBeUndefined();
    for (const id of kept) {
      expect(known.get(id)).toMatchObject({ id, currentStatus: { id: first?.id } });
    }
    await receiver.until(ids.length * 4 + 1);
    const events = receiver.receipts.map(({ event }) => event);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(events.filter(({ event }) => event === "prospect.deleted")).toHaveLength(1);
    const company = Me.parse(await current.call("GET", "/api/me")).company.id;
    expect(await faultsOf(company)).toEqual([
      expect.stringContaining(" 0 faults"),
      expect.stringMatching(/faults +0\n/),
    ]);
    await receiver.close();
  });
});
