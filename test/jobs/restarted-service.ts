/** Starts a local service that a test ends and starts again on the same data, and imports files into it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect } from "vitest";
import { type ApiClient, apiClient } from "../../docs/client/client.ts";
import { root } from "../../infra/build/bundle.ts";
import { present } from "../harness/shapes.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-import-restart-"));
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

export interface Running {
  readonly api: ApiClient;
  end(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

export async function start(): Promise<Running> {
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

export const importOf = async ({ api }: Running, id: number) =>
  present((await api.GET("/api/prospects/imports/{id}", { params: { path: { id } } })).data);

/** Uploads a file of prospects whose names begin with `word`, and returns the id of its import. */
export async function upload({ api }: Running, word: string, count: number): Promise<number> {
  const { data: job } = await api.POST("/api/prospects/imports", { body: {} });
  const { url, method, headers } = present(job?.upload);
  const rows = Array.from({ length: count }, (_, i) => `${word} ${i},39.7,-104.9\n`);
  const uploaded = await fetch(url, { method, headers, body: `name,lat,lng\n${rows.join("")}` });
  expect(uploaded.status).toBe(200);
  return present(job).id;
}

export const pause = (ms = 100) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the import has ended. Expects that it has created one prospect for each row. */
export async function expectWhole(service: Running, id: number, word: string, count: number): Promise<void> {
  while ((await importOf(service, id)).state === "running") await pause();
  expect(await importOf(service, id)).toMatchObject({ state: "completed", imported: count, skipped: 0 });
  const { data } = await service.api.GET("/api/prospects", { params: { query: { search: word, pageSize: 1 } } });
  expect(data?.total).toBe(count);
}
