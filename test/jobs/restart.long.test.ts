/**
 * Tests that running imports continue when the local service is stopped by SIGTERM or SIGKILL and started again. Each row must be
 * imported once.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { root } from "../../infra/build/bundle.ts";
import { present } from "../harness/shapes.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-import-restart-"));
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

interface Running {
  readonly api: ApiClient;
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

async function start(): Promise<Running> {
  const child = spawn(process.execPath, ["infra/local/start.ts"], {
    cwd: root,
    env: { ...process.env, PORT: "0", DATA_DIR: directory },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const ended = once(child, "exit");
  let url = "";
  for await (const line of createInterface(present(child.stdout))) {
    url = /^ready (\S+)$/.exec(line)?.[1] ?? "";
    if (url !== "") break;
  }
  const body = JSON.stringify({ email: "owner@acme.test" });
  const token = (await (await fetch(`${url}/local/token`, { method: "POST", body })).text()).trim();
  return {
    api: apiClient({ baseUrl: url, accessToken: () => token }),
    end: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
}

/** Number of rows. It is large, so that the service is still importing when the signal comes. */
const ROWS = 20_000;

const pause = () => new Promise((resolve) => setTimeout(resolve, 100));

const importOf = async ({ api }: Running, id: number) =>
  present((await api.GET("/api/prospects/imports/{id}", { params: { path: { id } } })).data);

/** Uploads a file of prospects whose names begin with `word`. Waits until some of its rows are written. */
async function runningImport(service: Running, word: string): Promise<number> {
  const { data: job } = await service.api.POST("/api/prospects/imports", { body: {} });
  const { url, method, headers } = present(job?.upload);
  const rows = Array.from({ length: ROWS }, (_, i) => `${word} ${i},39.7,-104.9\n`);
  const uploaded = await fetch(url, { method, headers, body: `name,lat,lng\n${rows.join("")}` });
  expect(uploaded.status).toBe(200);
  const id = present(job).id;
  while ((await importOf(service, id)).written === 0) await pause();
  expect((await importOf(service, id)).state).toBe("running");
  return id;
}

/**
 * An interrupted import waits up to three minutes until the lease of the killed job has expired. In addition, a busy machine is up to ten
 * times slower than an idle one.
 */
const TIMEOUT_MS = 1_800_000;

test("imports that SIGTERM and SIGKILL cut off continue after the next start, and import each row once", {
  timeout: TIMEOUT_MS,
}, async () => {
  const first = await start();
  const terminated = await runningImport(first, "Terminated");
  await first.end("SIGTERM");

  const second = await start();
  const killed = await runningImport(second, "Killed");
  await second.end("SIGKILL");

  const third = await start();
  for (const [id, search] of [
    [terminated, "Terminated"],
    [killed, "Killed"],
  ] as const) {
    while ((await importOf(third, id)).state === "running") await pause();
    expect(await importOf(third, id)).toMatchObject({ state: "completed", imported: ROWS, skipped: 0 });
    const { data } = await third.api.GET("/api/prospects", { params: { query: { search, pageSize: 1 } } });
    expect(data?.total).toBe(ROWS);
  }
  await third.end("SIGTERM");
});
