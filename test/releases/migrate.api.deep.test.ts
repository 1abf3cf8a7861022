/**
 * Tests `npm run migrate` while a company is in use. No request may fail, no event may be sent, and the command must continue after it was
 * killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import * as keys from "#shared/db/keys.ts";
import { openTable } from "#shared/db/table.ts";
import { shapeOfProspect } from "#shared/prospects/stored.ts";
import { root } from "../../infra/build/bundle.ts";
import { baseUrl } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

function start(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, PORT: new URL(baseUrl()).port },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.add(child);
  return child;
}

async function run(...args: string[]): Promise<string> {
  const child = start(...args);
  const [output, [code]] = await Promise.all([child.stdout === null ? "" : text(child.stdout), once(child, "exit")]);
  expect(code, output).toBe(0);
  return output;
}

const Outputs = z.object({ TableName: z.string(), DynamoDbEndpoint: z.string() });
const PROSPECTS = 60;
const WORKERS = 3;

test("rows change their shape and back while users work: no request fails and no event is sent", async () => {
  const { owner } = await newTeam();
  const company = String(dataOf(await owner.GET("/api/me")).company.id);
  const outputs = Outputs.parse(await (await fetch(`${baseUrl()}/local/outputs`)).json());
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = dynamoClient({ endpoint: outputs.DynamoDbEndpoint, region: "us-east-1", credentials });
  const table = openTable(outputs.TableName, client);

  const ids: number[] = [];
  for (let i = 0; i < PROSPECTS; i++) {
    const { id } = dataOf(await owner.POST("/api/prospects", { body: { name: `P${i}`, lat: 39.7, lng: -105 } }), 201);
    ids.push(id);
  }
  const shapes = async (): Promise<Set<number>> => {
    const rows = await table.batchGet(ids.map((id) => keys.prospect(Number(company), id)));
    return new Set(rows.map(shapeOfProspect));
  };
  expect(await run("infra/cli/migrate.ts", "rollback", "--company", company)).toContain("shape 1, completed");
  expect(await shapes()).toEqual(new Set([1]));

  const receiver = await startReceiver();
  const registrations = [{ event: "prospect.updated" }];
  dataOf(await owner.POST("/api/webhooks", { body: { name: "M", url: receiver.url, registrations } }), 201);

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

  // The command is killed twice: once at its start, and once when it has rewritten some rows.
  for (const isAtStart of [false, true]) {
    const dying = start("infra/cli/migrate.ts", "run", "--company", company, "--units-per-second", "40");
    const ended = once(dying, "exit");
    if (isAtStart) await wait(300);
    else while (!(await shapes()).has(2)) await wait(20);
    dying.kill("SIGKILL");
    await ended;
  }
  const finished = await run("infra/cli/migrate.ts", "run", "--company", company);
  isBusy = false;
  await Promise.all(workers);

  expect(finished).toContain("shape 2, completed");
  expect(await run("infra/cli/migrate.ts", "status", "--company", company)).toContain("shape 2, completed");
  expect(await shapes()).toEqual(new Set([2]));
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(await run("infra/cli/company-index.ts", "verify", "--company", company)).toContain(" 0 faults");
  await receiver.until(changes);
  await wait(1_000);
  expect(receiver.receipts).toHaveLength(changes);
  await receiver.close();
});
