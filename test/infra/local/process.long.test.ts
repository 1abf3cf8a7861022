/**
 * Tests the process of `npm start`: its single ready line and its exit codes. After it has ended, no child process may remain. After
 * SIGKILL, no data may be lost.
 */
import { execFileSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";
import { apiClient } from "../../../docs/client/client.ts";
import { localToken } from "../../../infra/local/local-token.ts";
import { directory, run, start } from "./start-process.ts";

async function ownerOf(baseUrl: string) {
  const token = await localToken(baseUrl, "owner@acme.test");
  return apiClient({ baseUrl, accessToken: () => token });
}

/**
 * Lists the processes of the DynamoDB server and of the shell that watches it. The command line of both contains the path of the data file.
 */
function servers(): string[] {
  const lines = execFileSync("ps", ["-eo", "pid,args"]).toString().split("\n");
  return lines.filter((line) => line.includes(path.join(directory, "tables.db")));
}

async function untilNoServers(): Promise<void> {
  while (servers().length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("--webhooks adds a receiver that works, one that answers 500 and one that refuses, with their deliveries", async () => {
  const started = start(["--memory", "--webhooks"]);
  const owner = await ownerOf(await started.ready);
  const { data: webhooks = [] } = await owner.GET("/api/webhooks");
  expect(webhooks.map(({ name }) => name).sort()).toEqual(["CRM", "Data warehouse", "Text messages"]);
  const attemptOf = async (name: string) => {
    const id = webhooks.find((webhook) => webhook.name === name)?.id ?? 0;
    for (;;) {
      const { data: log } = await owner.GET("/api/webhooks/{id}/deliveries", {
        params: { path: { id }, query: { event: "prospect.status_changed" } },
      });
      const attempted = log?.items.find(({ attemptCount }) => attemptCount > 0);
      if (attempted !== undefined) {
        const path = { id, deliveryId: attempted.id };
        const { data } = await owner.GET("/api/webhooks/{id}/deliveries/{deliveryId}", { params: { path } });
        return data?.attempts[0];
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  expect(await attemptOf("CRM")).toMatchObject({ status: 204, error: null });
  expect(await attemptOf("Data warehouse")).toMatchObject({ status: 500, answer: "this receiver always fails\n" });
  expect(await attemptOf("Text messages")).toMatchObject({ status: null, error: expect.stringMatching(/refuse/i) });
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
  await untilNoServers();

  const restarted = start([]);
  const url = await restarted.ready;
  expect(restarted.output().match(/^ready /gm)).toHaveLength(1);
  // Before the tokens, the service prints only the steps of its start and their seconds. The synthesis of the templates must therefore
  // print no warning.
  expect(restarted.output()).toMatch(/^(?:[a-z ]+ in \d+\.\d s\n)+\n# owner@acme\.test\nexport TOKEN=/);
  const last = new RegExp(`\nAPI        ${url}/api .+\nConsole    ${url}/\nready ${url}\n$`);
  expect(restarted.output()).toMatch(last);
  expect((await fetch(`${url}/api/me`)).status).toBe(401);
  const after = await ownerOf(url);
  const params = { path: { id: job.id } };
  for (let state = ""; state !== "completed"; ) {
    const { data } = await after.GET("/api/prospects/imports/{id}", { params });
    expect(["awaiting_upload", "running", "completed"]).toContain(data?.state);
    state = data?.state ?? "";
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
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
  const found = run("infra/cli/token.ts", ["rep@acme.test"], { HOST: "0.0.0.0", PORT: port });
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
    // The gateway itself sends this error. The CORS header of such an error has a fixed value and cannot depend on the request's origin. If
    // several origins are configured, it must therefore allow all origins.
    const refused = await fetch(`${url}/api/me`, { headers: { Origin: from } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "*"]);
  }

  const company = ["create", "--name", "New", "--owner", "owner@new.test"];
  expect(run("infra/cli/company.ts", company, { HOST: "0.0.0.0", PORT: port }).stdout).toContain(` on ${url}\n`);

  const admin = run("infra/cli/token.ts", ["admin@acme.test"], { HOST: "0.0.0.0", PORT: port }).stdout;
  const smoke = (args: readonly string[], more: Record<string, string>) =>
    run("infra/cli/smoke.ts", ["--changes", "2", ...args], { HOST: "0.0.0.0", PORT: port, ...more }).stdout;
  expect(smoke([], {})).toMatch(
    /\npassed: prospects, map, 3 signed webhooks, separation of companies \(8 steps at .+\)\n$/,
  );
  expect(smoke(["--base", url], { SMOKE_TOKEN: admin.trim() })).toMatch(
    /\npassed: prospects, map, 3 signed webhooks \(8 steps at .+\)\n$/,
  );

  const [line = ""] = execFileSync("ps", ["--ppid", String(child.pid), "-o", "pid,args"])
    .toString()
    .split("\n")
    .filter((text) => text.includes("dynoxide"));
  process.kill(Number(line.trim().split(" ")[0]), "SIGKILL");
  expect(await code).toBe(1);
  expect(output()).toContain("the DynamoDB server ended by itself");
});
