/**
 * Tests that the last release and this one run at once on one table, as during a deployment: both serve requests, publish changes, flush the
 * index and deliver webhooks.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
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
    return serviceAt(url);
  }
  throw new Error(`the service of ${folder} ended before it was ready`);
}

async function serviceAt(url: string): Promise<Service> {
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

const WORKERS = 3;
const ROUNDS = 3;
/** Two services start one after the other. */
const TIMEOUT_MS = 240_000;

test.skipIf(!hasHistory())(
  `release ${lastRelease().version} and this one run at once on one table`,
  async () => {
    const [oldData, newData] = [join(data, "old"), join(data, "new")];
    const old = await start(codeOfLastRelease(), oldData, {});
    const { TableName, DynamoDbEndpoint } = await outputsOf(old);
    // Both services need the same keys of webhook secrets. With the file `complete`, the second one does not load demo data.
    mkdirSync(newData);
    for (const file of ["encryption-keys.json", "complete"]) copyFileSync(join(oldData, file), join(newData, file));
    const current = await start(root, newData, { DYNAMODB_ENDPOINT: DynamoDbEndpoint, LOCAL_PROSPECT_SHAPE: "1" });
    expect((await outputsOf(current)).TableName).toBe(TableName);

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
    expect(await command(current, "infra/cli/company-index.ts", "verify", "--company", String(company))).toContain(
      " 0 faults",
    );
    expect(await command(current, "infra/cli/webhooks.ts", "reconcile", "--company", String(company))).toMatch(
      /faults +0\n/,
    );
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const table = openTable(TableName, dynamoClient({ endpoint: DynamoDbEndpoint, region: "us-east-1", credentials }));
    const rows = await table.batchGet(ids.map((id) => keys.prospect(company, id)));
    expect(rows.map(shapeOfProspect)).toEqual(ids.map(() => 1));
    await receiver.close();
  },
  TIMEOUT_MS,
);
