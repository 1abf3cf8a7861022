/** Tests that two deployments with different settings work on one table with rows of the last release, as during an upgrade. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { openTable } from "#shared/db/table.ts";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { root } from "../../infra/build/bundle.ts";
import { documentsAt } from "../../infra/local/servers/clients.ts";
import { type LocalService, startLocal } from "../../infra/local/service.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { lastShapes } from "./recorded.ts";

const data = mkdtempSync(join(tmpdir(), "canvassing-releases-"));
const { rows, owner, companyId } = lastShapes();
const WORKERS = 3;
const ROUNDS = 3;

const settings = { port: 0, webhookUrlPolicy: "local", timeScale: 60 } as const;
const folders = [join(data, "one"), join(data, "other")] as const;
const first = await startLocal({ ...settings, dataDir: folders[0] });
afterAll(() => first.stop());
const { TableName, DynamoDbEndpoint } = first.outputs;
// The recorded data key, which encrypts secrets, is itself encrypted with a key that this machine does not have. It is left out, and the
// services make a new data key.
const readable = rows.filter(({ type }) => type !== "data-key");
await openTable(TableName, documentsAt(DynamoDbEndpoint)).batchPut(readable);
// Both services need the same keys for secrets and cursors. A service removes the keys if the file `complete` is missing.
mkdirSync(folders[1]);
for (const file of ["encryption-keys.json", "complete"]) copyFileSync(join(folders[0], file), join(folders[1], file));
const throttles = { requests: { perSecond: 50, burst: 100 }, company: { perSecond: 50, burst: 100 } };
const otherSettings = { ...settings, dataDir: folders[1], dynamoDbEndpoint: DynamoDbEndpoint, throttles };
const second = await startLocal({ ...otherSettings, allowedOrigins: ["https://other.example"] });
afterAll(() => second.stop());

async function clientOf(service: LocalService): Promise<ApiClient> {
  const token = present(await service.tokenOf(owner));
  return apiClient({ baseUrl: service.url, accessToken: () => token });
}

async function command(...args: string[]): Promise<string> {
  const env = { ...process.env, PORT: new URL(second.url).port };
  return (await promisify(execFile)(process.execPath, [...args, "--company", String(companyId)], { cwd: root, env }))
    .stdout;
}

test("two deployments change the rows of the last release, and each event is sent once", async () => {
  const [one, other] = [await clientOf(first), await clientOf(second)];
  const receiver = await startReceiver();
  for (const { id } of dataOf(await one.GET("/api/webhooks"))) {
    dataOf(await one.DELETE("/api/webhooks/{id}", { params: { path: { id } } }));
  }
  for (const [client, event] of [
    [one, "prospect.created"],
    [other, "prospect.updated"],
  ] as const) {
    const body = { name: event, url: receiver.url, registrations: [{ event }] };
    dataOf(await client.POST("/api/webhooks", { body }), 201);
  }
  const statuses = dataOf(await one.GET("/api/statuses")).map(({ id }) => id);
  const recorded = dataOf(await other.GET("/api/prospects")).items.map(({ id }) => id);
  expect(recorded.length).toBeGreaterThan(3);
  let page = dataOf(await one.GET("/api/changes", { params: { query: { types: "prospects" } } }));
  while (page.hasMore) page = dataOf(await one.GET("/api/changes", { params: { query: { cursor: page.cursor } } }));

  const created: number[] = [];
  async function change(id: number, clients: readonly ApiClient[]): Promise<void> {
    const params = { path: { id } };
    for (const [i, client] of clients.entries()) {
      const body = { currentStatusId: present(statuses[i % 2]), name: `Changed ${id}-${i}` };
      dataOf(await client.PATCH("/api/prospects/{id}", { params, body }));
      const note = { params, body: { body: `Note ${i} about a chimney` } };
      dataOf(await client.POST("/api/prospects/{id}/notes", note), 201);
    }
    const read = await Promise.all(clients.slice(0, 2).map((client) => client.GET("/api/prospects/{id}", { params })));
    expect(dataOf(present(read[0]))).toEqual(dataOf(present(read[1])));
  }
  const work = Array.from({ length: WORKERS }, async (_, worker) => {
    for (let round = 0; round < ROUNDS; round++) {
      const [creator, changer] = (worker + round) % 2 === 0 ? [one, other] : [other, one];
      const { id } = dataOf(await creator.POST("/api/prospects", { body: { name: `W${worker}-${round}` } }), 201);
      created.push(id);
      await change(id, [changer, creator, changer]);
    }
  });
  await Promise.all([...work, ...recorded.map((id, i) => change(id, i % 2 === 0 ? [one, other] : [other, one]))]);

  for (const query of [{}, { search: "chimney" }, { status: "Visited" }]) {
    const lists = await Promise.all([one, other].map((client) => client.GET("/api/prospects", { params: { query } })));
    expect(dataOf(present(lists[0]))).toEqual(dataOf(present(lists[1])));
  }
  expect(dataOf(await one.GET("/api/prospects")).total).toBe(recorded.length + created.length);
  // The second deployment continues from a cursor of the first one.
  const changed = new Set<number>();
  do {
    page = dataOf(await other.GET("/api/changes", { params: { query: { cursor: page.cursor } } }));
    for (const { id } of page.items) changed.add(id);
  } while (page.hasMore);
  expect([...changed].sort()).toEqual([...recorded, ...created].sort());

  const events = created.length + created.length * 3 + recorded.length * 2;
  await receiver.until(events);
  await wait(1_000);
  expect(receiver.receipts).toHaveLength(events);
  expect(new Set(receiver.receipts.map(({ event }) => event.id)).size).toBe(events);
  expect(await command("infra/cli/company-index.ts", "verify")).toContain(" 0 faults");
  expect(await command("infra/cli/webhooks.ts", "reconcile")).toMatch(/faults +0\n/);
  await receiver.close();
});
