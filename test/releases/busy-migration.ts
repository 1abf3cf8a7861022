/**
 * Migrates the rows of a company to another shape while users work. The test kills the command twice. Each time, a new start of the command
 * must continue the migration.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { expect } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { type ProspectShape, shapeOfProspect } from "#shared/prospects/stored.ts";
import type { ApiClient } from "../../docs/client/client.ts";
import { root } from "../../infra/build/bundle.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf } from "../harness/shapes.ts";

type Client = Pick<ApiClient, "GET" | "POST" | "PATCH">;

export interface Migration {
  readonly command: "run" | "rollback";
  /** The shape that the command writes. The functions of the service must write it, too. */
  readonly shape: ProspectShape;
}

export interface BusyCompany {
  readonly id: string;
  readonly owner: Client;
  /** Runs an admin command on the service. It must succeed. Returns its output. */
  run(...args: readonly string[]): Promise<string>;
  /** Returns the shapes that occur in the company's prospects. */
  shapes(): Promise<Set<number>>;
  /** Migrates the rows while users change and read prospects. Fails if a request fails, or if the migration causes an event. */
  migrate(migration: Migration): Promise<void>;
  /** Kills the commands that still run. */
  stop(): void;
}

const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const PROSPECTS = 60;
const WORKERS = 3;
/** Number of prospects that the users change. The rows of the other prospects get their new shape only from the migration. */
const CHANGED = PROSPECTS / 2;

/** Creates prospects in the company of `owner`. Returns functions that migrate them and check their rows. */
export async function busyCompany(url: string, owner: Client): Promise<BusyCompany> {
  const children = new Set<ChildProcess>();
  const company = dataOf(await owner.GET("/api/me")).company.id;
  const outputs = Outputs.parse(await (await fetch(`${url}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: outputs.DynamoDbEndpoint, region: "us-east-1", credentials });
  const table = openTable(outputs.TableName, client);
  const ids: number[] = [];
  for (let i = 0; i < PROSPECTS; i++) {
    const { id } = dataOf(await owner.POST("/api/prospects", { body: { name: `P${i}`, lat: 39.7, lng: -105 } }), 201);
    ids.push(id);
  }

  function start(...args: readonly string[]): ChildProcess {
    const env = { ...process.env, PORT: new URL(url).port };
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
    children.add(child);
    return child;
  }
  async function run(...args: readonly string[]): Promise<string> {
    const child = start(...args);
    const [output, [code]] = await Promise.all([child.stdout === null ? "" : text(child.stdout), once(child, "exit")]);
    expect(code, output).toBe(0);
    return output;
  }
  const shapes = async (): Promise<Set<number>> => {
    const rows = await table.batchGet(ids.map((id) => keys.prospect(company, id)));
    return new Set(rows.map(shapeOfProspect));
  };

  async function migrate({ command, shape }: Migration): Promise<void> {
    const receiver = await startReceiver();
    const registrations = [{ event: "prospect.updated" }];
    dataOf(await owner.POST("/api/webhooks", { body: { name: "M", url: receiver.url, registrations } }), 201);
    const work = users(owner, ids.slice(0, CHANGED));
    const args = ["infra/cli/migrate.ts", command, "--company", String(company)];
    // The command is killed twice: once at its start, and once when some rows have the new shape.
    for (const isAtStart of [false, true]) {
      const dying = start(...args, "--units-per-second", "40");
      const ended = once(dying, "exit");
      if (isAtStart) await wait(300);
      else while (!(await shapes()).has(shape)) await wait(20);
      dying.kill("SIGKILL");
      await ended;
    }
    const finished = await run(...args);
    const { changes, statuses } = await work.end();
    expect(finished).toMatch(new RegExp(`shape ${shape}, completed, [1-9]\\d* rows rewritten`));
    const status = await run("infra/cli/migrate.ts", "status", "--company", String(company));
    expect(status).toContain(`shape ${shape}, completed`);
    expect(await shapes()).toEqual(new Set([shape]));
    expect(statuses.filter((code) => code !== 200)).toEqual([]);
    const verified = await run("infra/cli/company-index.ts", "verify", "--company", String(company));
    expect(verified).toContain(" 0 faults");
    await receiver.until(changes);
    await wait(1_000);
    expect(receiver.receipts).toHaveLength(changes);
    await receiver.close();
  }
  const stop = (): void => {
    for (const child of children) child.kill("SIGKILL");
  };
  return { id: String(company), owner, run, shapes, migrate, stop };
}

/** Changes, reads and finds prospects until `end` is called. */
function users(owner: Client, ids: readonly number[]) {
  let changes = 0;
  let isBusy = true;
  const statuses: number[] = [];
  const workers = Array.from({ length: WORKERS }, async (_, worker) => {
    for (let i = worker; isBusy; i += WORKERS) {
      const id = ids[i % ids.length] ?? 0;
      const path = { params: { path: { id } } };
      const patched = await owner.PATCH("/api/prospects/{id}", { ...path, body: { name: `N${worker}-${i}` } });
      if (patched.response.ok) changes++;
      const [read, list] = [
        await owner.GET("/api/prospects/{id}", path),
        await owner.GET("/api/prospects", { params: { query: { search: `n${worker}-${i}` } } }),
      ];
      statuses.push(patched.response.status, read.response.status, list.response.status);
      expect(list.data?.total).toBe(1);
    }
  });
  return {
    async end() {
      isBusy = false;
      await Promise.all(workers);
      return { changes, statuses };
    },
  };
}
