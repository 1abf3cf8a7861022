/** Runs the restore drill of docs/keep.md on a local service, while users change data and webhooks are sent. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { UpdateContinuousBackupsCommand } from "@aws-sdk/client-dynamodb";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod/mini";
import { apiClient } from "../../../docs/client/client.ts";
import { startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";
import { localToken } from "../../../infra/local/local-token.ts";
import { dynamoDbAt } from "../../../infra/local/servers/clients.ts";
import { outputsOf } from "../../harness/local-outputs.ts";
import { startPointInTime } from "../../harness/point-in-time.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { dataOf, present } from "../../harness/shapes.ts";
import { start } from "../local/start-process.ts";
import { runAt } from "./command-process.ts";
import { restorePoint } from "./restore-scene.ts";

const directory = mkdtempSync(path.join(tmpdir(), "canvassing-drill-"));

type Service = Awaited<ReturnType<typeof startService>>;

async function startService(env: Record<string, string>) {
  const { child, ready, code } = start([], { DATA_DIR: directory, LOCAL_TIME_SCALE: "60", ...env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const url = await ready;
  const token = await localToken(url, "owner@acme.test");
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await code;
  };
  return { url, owner: apiClient({ baseUrl: url, accessToken: () => token }), stop };
}

const idsAt = ({ requests }: Receiver): string[] =>
  requests.map(({ headers }) => String(headers["x-service-delivery"]));

const patient = { timeout: 120_000, interval: 50 };

interface Written {
  readonly id: number;
  readonly begun: number;
  readonly ended: number;
}

function writer({ owner }: Service) {
  const written: Written[] = [];
  let isStopped = false;
  const work = async (): Promise<void> => {
    while (!isStopped) {
      const begun = Date.now();
      const { id } = dataOf(await owner.POST("/api/prospects", { body: { name: `drill ${written.length}` } }), 201);
      written.push({ id, begun, ended: Date.now() });
      // Each prospect with its deliveries costs the service about 0.1 s of processor time. The pause leaves time for the tested commands.
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  };
  const running = work();
  const stop = (): Promise<void> => {
    isStopped = true;
    return running;
  };
  return { written, stop };
}

async function drillIds({ owner }: Service): Promise<Set<number>> {
  const ids = new Set<number>();
  for (let page = 1, total = 1; (page - 1) * 100 < total; page++) {
    const query = { search: "drill", page, pageSize: 100 };
    const found = dataOf(await owner.GET("/api/prospects", { params: { query } }), 200);
    for (const { id } of found.items) ids.add(id);
    total = found.total;
  }
  return ids;
}

const Restored = z.object({
  activeTableStream: z.string(),
  deliveries: z.object({ ended: z.int(), waiting: z.int() }),
});

test("a restore loses only what is newer than the restore point, and sends no webhook twice", async () => {
  const engine = await startDynamoDb(undefined);
  onTestFinished(() => engine.stop());
  const dynamoDb = await startPointInTime(engine.endpoint);
  onTestFinished(() => dynamoDb.stop());
  const env = { DYNAMODB_ENDPOINT: dynamoDb.endpoint };
  const before = await startService(env);
  const { TableName } = await outputsOf(before.url);
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
  const enabling = new UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification });
  await dynamoDbAt(dynamoDb.endpoint).send(enabling);
  const good = await startReceiver();
  onTestFinished(() => good.close());
  let isRepaired = false;
  const accepted: string[] = [];
  const broken = await startReceiver(({ headers }, response) => {
    response.statusCode = isRepaired ? 200 : 503;
    if (isRepaired) accepted.push(String(headers["x-service-delivery"]));
    response.end();
  });
  onTestFinished(() => broken.close());
  for (const { url } of [good, broken]) {
    const registrations = [{ event: "prospect.created" }];
    dataOf(await before.owner.POST("/api/webhooks", { body: { name: url, url, registrations } }), 201);
  }
  const earlier = writer(before);
  await broken.until(5);
  await earlier.stop();
  // If the restore point were between an event and its deliveries, `verify` would report missing deliveries.
  await good.until(earlier.written.length);
  const at = (await restorePoint()).getTime();
  const later = writer(before);
  isRepaired = true;
  await vi.waitUntil(() => accepted.length >= 3, patient);

  const to = new Date(at).toISOString().replace(".000", "");
  const first = await runAt(before.url, "restore.ts", "table", "--to", to, "--as", "Restored");
  expect(first.stderr).toContain("restores");
  expect(first.code, first.stderr).toBe(0);
  expect(Restored.parse(JSON.parse(first.stdout)).deliveries.ended, "sent after the point").toBeGreaterThan(0);
  const checked = await runAt(before.url, "restore.ts", "verify", "--table", "Restored");
  expect(checked.stdout).toMatch(/^company \d+: no faults$/m);
  expect(checked.code, checked.stdout).toBe(0);
  await later.stop();
  const written = [...earlier.written, ...later.written];
  await good.until(written.length);
  await vi.waitUntil(() => accepted.length >= written.length, patient);
  const second = await runAt(before.url, "restore.ts", "table", "--to", to, "--as", "Restored");
  const { activeTableStream, deliveries } = Restored.parse(JSON.parse(second.stdout));
  expect(deliveries.waiting).toBe(0);
  await before.stop();

  const older = written.filter(({ ended }) => ended < at);
  const newer = written.filter(({ begun }) => begun >= at);
  expect(Math.min(older.length, newer.length)).toBeGreaterThan(3);
  const after = await startService({ ...env, ACTIVE_TABLE_STREAM: activeTableStream });
  expect((await outputsOf(after.url)).TableName).toBe("Restored");
  const kept = await drillIds(after);
  expect(older.filter(({ id }) => !kept.has(id))).toEqual([]);
  expect(newer.filter(({ id }) => kept.has(id))).toEqual([]);

  const sent = good.receipts.length;
  const made = dataOf(await after.owner.POST("/api/prospects", { body: { name: "drill after the switch" } }), 201);
  expect(made.id).toBeGreaterThan(Math.max(...written.map(({ id }) => id)));
  await vi.waitUntil(() => good.receipts.length > sent && accepted.length > sent, patient);
  const isMade = ({ event }: Receiver["receipts"][number]) => JSON.stringify(event.data).includes(`"id":${made.id},`);
  expect(good.receipts.slice(sent).every(isMade)).toBe(true);
  expect(new Set(idsAt(good)).size).toBe(good.requests.length);
  expect(new Set(accepted).size).toBe(accepted.length);
  const again = await runAt(after.url, "restore.ts", "verify", "--table", "Restored");
  expect(again.code, again.stdout).toBe(0);
  const ready = await runAt(after.url, "restore.ts", "prepare", "--table", TableName);
  expect(ready.code, ready.stderr).toBe(0);
  await after.stop();

  const back = await startService(env);
  expect((await outputsOf(back.url)).TableName).toBe(TableName);
  const all = await drillIds(back);
  expect(written.filter(({ id }) => !all.has(id))).toEqual([]);
  expect(all.has(made.id)).toBe(false);
  const received = good.requests.length + accepted.length;
  const newest = dataOf(await back.owner.POST("/api/prospects", { body: { name: "drill after the way back" } }), 201);
  expect(newest.id).toBeGreaterThan(made.id);
  await vi.waitUntil(() => good.requests.length + accepted.length >= received + 2, patient);
  expect(new Set(idsAt(good)).size).toBe(good.requests.length);
  expect(new Set(accepted).size).toBe(accepted.length);
  expect(present(good.receipts[0]).event.event).toBe("prospect.created");
  await back.stop();
}, 300_000);
