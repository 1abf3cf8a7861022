/** Tests that imports continue and import each row once when SIGTERM or SIGKILL stops the local service and it starts again. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ApiClient } from "../../docs/client/client.ts";
import { at } from "../harness/client.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { restartable } from "./restarted-service.ts";

/** Number of rows. It is large, so that the service is still importing when the signal comes. */
const ROWS = 20_000;

const importOf = async (api: ApiClient, id: number) => dataOf(await api.GET("/api/prospects/imports/{id}", at(id)));

/** Uploads a file of prospects whose names begin with `word`, and waits until some of its rows are written. */
async function runningImport(api: ApiClient, word: string): Promise<number> {
  const { id, upload } = dataOf(await api.POST("/api/prospects/imports", { body: {} }), 201);
  const { url, method, headers } = present(upload);
  const rows = Array.from({ length: ROWS }, (_, i) => `${word} ${i},39.7,-104.9\n`);
  const uploaded = await fetch(url, { method, headers, body: `name,lat,lng\n${rows.join("")}` });
  expect(uploaded.status).toBe(200);
  while ((await importOf(api, id)).written === 0) await sleep(100);
  expect((await importOf(api, id)).state).toBe("running");
  return id;
}

/** Waits until the import has ended. Expects that it has created one prospect for each row. */
async function expectWhole(api: ApiClient, id: number, search: string): Promise<void> {
  while ((await importOf(api, id)).state === "running") await sleep(100);
  expect(await importOf(api, id)).toMatchObject({ state: "completed", imported: ROWS, skipped: 0 });
  const { total } = dataOf(await api.GET("/api/prospects", { params: { query: { search, pageSize: 1 } } }));
  expect(total).toBe(ROWS);
}

/**
 * An interrupted import continues after about three minutes: the lease of the killed job (two minutes) must expire, and then the sweeper
 * starts the import again. In addition, a busy machine is up to ten times slower than an idle one.
 */
const TIMEOUT_MS = 1_800_000;
const OWNER = "owner@acme.test";

test("after SIGTERM and SIGKILL, imports continue and import each row once", { timeout: TIMEOUT_MS }, async () => {
  const start = restartable();
  const first = await start();
  const terminated = await runningImport(await first.clientOf(OWNER), "Terminated");
  await first.end("SIGTERM");

  const second = await start();
  const killed = await runningImport(await second.clientOf(OWNER), "Killed");
  await second.end("SIGKILL");

  const third = await start();
  const api = await third.clientOf(OWNER);
  await expectWhole(api, terminated, "Terminated");
  await expectWhole(api, killed, "Killed");
  await third.end("SIGTERM");
});
