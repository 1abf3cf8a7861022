/** Tests the process of `npm start`: its ready line, its exit codes, and that neither child processes nor files remain. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { apiClient } from "../../../docs/client/client.ts";
import { localToken } from "../../../infra/local/local-token.ts";
import { pressCtrlC } from "../../harness/process.ts";
import { runFile } from "../cli/command-process.ts";
import { directory, type Started, start, startByNpm } from "./start-process.ts";

async function ownerOf(baseUrl: string) {
  const token = await localToken(baseUrl, "owner@acme.test");
  return apiClient({ baseUrl, accessToken: () => token });
}

/** Returns the command lines of the DynamoDB server and of the shell that watches it. Both contain the path of the data file. */
function servers(): string[] {
  const lines = execFileSync("ps", ["-eo", "pid,args"]).toString().split("\n");
  return lines.filter((line) => line.includes(path.join(directory, "tables.db")));
}

test("--webhooks adds a receiver that works, one that answers 500 and one that refuses, with their deliveries", async () => {
  const started = start(["--memory", "--webhooks"]);
  const owner = await ownerOf(await started.ready);
  const { data: webhooks = [] } = await owner.GET("/api/webhooks");
  expect(webhooks.map(({ name }) => name).sort()).toEqual(["CRM", "Data warehouse", "Text messages"]);
  const attemptOf = async (name: string) => {
    const id = webhooks.find((webhook) => webhook.name === name)?.id ?? 0;
    const changed = { path: { id }, query: { event: "prospect.status_changed" } };
    const { data: log } = await owner.GET("/api/webhooks/{id}/deliveries", { params: changed });
    const path = { id, deliveryId: log?.items.find(({ attemptCount }) => attemptCount > 0)?.id ?? "" };
    const { data } = await owner.GET("/api/webhooks/{id}/deliveries/{deliveryId}", { params: { path } });
    return data?.attempts[0];
  };
  const firstAttemptOf = (name: string) => expect.poll(() => attemptOf(name));
  await firstAttemptOf("CRM").toMatchObject({ status: 204, error: null });
  await firstAttemptOf("Data warehouse").toMatchObject({ status: 500, answer: "this receiver always fails\n" });
  await firstAttemptOf("Text messages").toMatchObject({ status: null, error: expect.stringMatching(/refuse/i) });
  started.child.kill("SIGTERM");
  expect(await started.code).toBe(0);
});

test("SIGKILL also ends the DynamoDB server and loses no upload, the next start uses the directory, and SIGTERM ends with exit code 0", async () => {
  const killed = start([]);
  const before = await ownerOf(await killed.ready);
  expect(servers().length).toBeGreaterThan(0);
  // The process is killed as soon as the bucket has accepted the upload. After the next start, the service must import the file.
  const { data: job } = await before.POST("/api/prospects/imports", { body: {} });
  if (job?.upload == null) throw new Error("no upload");
  const { url: place, method, headers } = job.upload;
  const rows = Array.from({ length: 3_000 }, (_, i) => `Uploaded ${i},39.7,-104.9\n`);
  const uploaded = await fetch(place, { method, headers, body: `name,lat,lng\n${rows.join("")}` });
  expect(uploaded.status).toBe(200);
  killed.child.kill("SIGKILL");
  await killed.code;
  await expect.poll(servers, { interval: 20 }).toEqual([]);

  const restarted = start([]);
  const url = await restarted.ready;
  expect(restarted.output().match(/^ready /gm)).toHaveLength(1);
  // Before the tokens, the service prints only the steps of its start, and no warning of the AWS CDK.
  expect(restarted.output()).toMatch(/^(?:[a-z ]+ in \d+\.\d s\n)+\n# owner@acme\.test\nexport TOKEN=/);
  const last = new RegExp(`\nAPI        ${url}/api .+\nConsole    ${url}/\nready ${url}\n$`);
  expect(restarted.output()).toMatch(last);
  expect((await fetch(`${url}/api/me`)).status).toBe(401);
  const after = await ownerOf(url);
  const params = { path: { id: job.id } };
  const stateOfJob = async () => (await after.GET("/api/prospects/imports/{id}", { params })).data?.state;
  await expect.poll(stateOfJob).toBe("completed");
  const { data: found } = await after.GET("/api/prospects", { params: { query: { search: "Uploaded" } } });
  expect(found?.total).toBe(3_000);

  const second = start([]);
  expect(await second.code, "a data directory in use").toBe(1);
  expect(second.output()).toBe(
    `DATA_DIR: ${directory} is in use by another running service (process ${restarted.child.pid}): stop it, or set DATA_DIR to another directory\n`,
  );
  restarted.child.kill("SIGTERM");
  expect(await restarted.code).toBe(0);
  expect(servers()).toEqual([]);
});

test("CORS allows a configured origin, the commands find the service by HOST and PORT, and it reports the death of its DynamoDB server", async () => {
  const origin = "https://app.example.com";
  const env = { HOST: "0.0.0.0", ALLOWED_ORIGINS: ` ${origin}, http://localhost:5173 ` };
  const { child, ready, code, output } = start(["--memory"], env);
  const url = await ready;
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

  const preflight = { Origin: origin, "Access-Control-Request-Method": "PATCH" };
  const allowed = await fetch(`${url}/api/prospects/1`, { method: "OPTIONS", headers: preflight });
  expect(allowed.ok).toBe(true);
  expect(allowed.headers.get("access-control-allow-methods")).toContain("PATCH");
  const { port } = new URL(url);
  const run = (file: string, args: readonly string[], more: Record<string, string> = {}) =>
    runFile(`infra/cli/${file}.ts`, args, { ...process.env, HOST: "0.0.0.0", PORT: port, ...more });
  const found = await run("token", ["rep@acme.test"]);
  expect(found.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  expect(found.stderr).toBe(`target: local service at ${url}\n`);
  for (const [from, header] of [
    [origin, origin],
    ["http://localhost:5173", "http://localhost:5173"],
    ["https://other.example.com", null],
  ] as const) {
    const headers = { Origin: from, Authorization: `Bearer ${found.stdout.trim()}` };
    const answer = await fetch(`${url}/api/me`, { headers });
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, header]);
    // The CORS header of the gateway's own errors is fixed, so with several configured origins it must allow all.
    const refused = await fetch(`${url}/api/me`, { headers: { Origin: from } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "*"]);
  }

  const company = ["create", "--name", "New", "--owner", "owner@new.test"];
  expect((await run("company", company)).stdout).toContain(` on ${url}\n`);

  const admin = await run("token", ["admin@acme.test"]);
  const smoke = ["--changes", "2"];
  expect((await run("smoke", smoke)).stdout).toMatch(
    /\npassed: prospects, map, 3 signed webhooks, separation of companies \(8 steps at .+\)\n$/,
  );
  const remote = await run("smoke", [...smoke, "--base", url], { SMOKE_TOKEN: admin.stdout.trim() });
  expect(remote.stdout).toMatch(/\npassed: prospects, map, 3 signed webhooks \(8 steps at .+\)\n$/);

  const [line = ""] = execFileSync("ps", ["--ppid", String(child.pid), "-o", "pid,args"])
    .toString()
    .split("\n")
    .filter((text) => text.includes("dynoxide"));
  process.kill(Number(line.trim().split(" ")[0]), "SIGKILL");
  expect(await code).toBe(1);
  expect(output()).toContain("the DynamoDB server ended by itself");
});

// Ctrl-C in a terminal signals npm and the service at once, and npm forwards the signal, so the service gets each signal twice.
describe("a signal to npm start -- --memory", () => {
  /** The temporary directory of the service under test. */
  let temporary = "";
  beforeEach(() => {
    temporary = mkdtempSync(path.join(tmpdir(), "canvassing-signals-"));
  });

  const npmStart = (): Started => startByNpm(["--memory"], { TMPDIR: temporary });

  /** Returns the directories in /dev/shm (a file system in memory) that the processes of the service use. */
  function inMemory({ child }: Started): string[] {
    const rows = execFileSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8" })
      .split("\n")
      .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []);
    const family = new Set([String(child.pid)]);
    for (const before of [0, 1, 2, 3]) {
      for (const [, pid = "", parent = ""] of rows) if (family.has(parent)) family.add(pid);
      if (family.size === before) break;
    }
    const args = rows.flatMap(([, pid = "", , line = ""]) => (family.has(pid) ? [line] : []));
    return [...new Set(args.flatMap((line) => line.match(/\/dev\/shm\/canvassing-\w+/g) ?? []))];
  }

  /** The names of the service's own files in its temporary directory. Node.js and npm also use this directory. */
  const left = (): string[] => readdirSync(temporary).filter((name) => name.startsWith("canvassing"));

  test("Ctrl-C ends the running service with exit code 0, and no file is left", async () => {
    const started = npmStart();
    const url = await started.ready;
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(left()).toHaveLength(1);
    const directories = inMemory(started);
    pressCtrlC(started);
    expect(await started.code).toBe(0);
    expect(left()).toEqual([]);
    expect(directories.filter((place) => existsSync(place))).toEqual([]);
  });

  test("Ctrl-C during the start leaves no file", async () => {
    const started = npmStart();
    while (left().length === 0) await wait(5);
    pressCtrlC(started);
    expect(await started.code).toBe(0);
    expect(left()).toEqual([]);
  });

  test("a signal that is repeated until the service ends leaves no file", async () => {
    const started = npmStart();
    const { hostname, port } = new URL(await started.ready);
    const directories = inMemory(started);
    // The service waits some seconds for this unfinished request, so that it is still running when the signal is repeated.
    const unfinished = connect(Number(port), hostname);
    unfinished.on("error", () => undefined);
    await once(unfinished, "connect");
    unfinished.write("POST /api/prospects HTTP/1.1\r\nHost: local\r\nContent-Length: 10\r\n\r\n{");
    let isEnded = false;
    void started.code.then(() => {
      isEnded = true;
    });
    while (!isEnded) {
      started.child.kill("SIGTERM");
      await wait(100);
    }
    unfinished.destroy();
    expect(left()).toEqual([]);
    expect(directories.filter((place) => existsSync(place))).toEqual([]);
  });
});
