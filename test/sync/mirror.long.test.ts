/** Tests docs/automation/mirror.ts: after any failure, its file holds what the lists of the API show. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { newKey } from "../harness/api-key.ts";
import { at, baseUrl } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { listsOf } from "../offline/lists.ts";

const as = await newTeam();
const API_KEY = await newKey(as.admin, ["prospects:read"]);
const FILE = join(mkdtempSync(join(tmpdir(), "mirror-")), "mirror.db");

/** May answer a request of the script instead of the service, and then returns true. `count` is the number of the request, from 1. */
type Trouble = (count: number, response: ServerResponse, script: ChildProcess) => boolean;

/** Runs the script once, with pages of 12 records. Returns its exit code, or the signal that has killed it. */
async function run(trouble: Trouble = () => false): Promise<number | string> {
  let count = 0;
  const { endpoint: API_URL, stop } = await serveOnLoopback(async ({ url = "", headers }, response) => {
    if (trouble(++count, response, script)) return;
    const address = `${baseUrl()}${url}`.replace("limit=1000", "limit=12");
    const answer = await fetch(address, { headers: { Authorization: headers.authorization ?? "" } });
    response.writeHead(answer.status).end(await answer.text());
  });
  const script = spawn(process.execPath, ["docs/automation/mirror.ts"], {
    cwd: root,
    env: { ...process.env, API_KEY, API_URL, FILE },
    stdio: "ignore",
  });
  const [code, signal] = await once(script, "exit");
  stop();
  return code ?? signal;
}

function mirrored(type: string): unknown[] {
  const db = new DatabaseSync(FILE);
  const rows = db.prepare("SELECT data FROM records WHERE type = ? AND data IS NOT NULL ORDER BY id").all(type);
  db.close();
  return rows.map(({ data }) => JSON.parse(String(data)));
}

const [changed = 0, deleted = 0] = await Promise.all(
  Array.from({ length: 12 }, async (_, i) => {
    const { id } = dataOf(await as.admin.POST("/api/prospects", { body: { name: `Door ${i}` } }), 201);
    dataOf(await as.admin.POST("/api/prospects/{id}/notes", { ...at(id), body: { body: "Hello" } }), 201);
    return id;
  }),
);

/** Expects that the file holds the prospects and notes that the lists show, and no other ones, and at least the listed statuses. */
async function expectSame(): Promise<void> {
  const { prospects, notes, statuses } = await listsOf(as.admin);
  expect({ prospects: mirrored("prospects"), notes: mirrored("notes") }).toEqual({ prospects, notes });
  expect(mirrored("statuses")).toEqual(expect.arrayContaining(statuses));
}

function damage(sql: string): void {
  const db = new DatabaseSync(FILE);
  db.exec(sql);
  db.close();
}

test("a run that is killed at any request is completed by the next run", async () => {
  for (let at = 1; ; at++) {
    const code = await run((count, _, script) => count === at && script.kill("SIGKILL"));
    if (code === 0) break;
    expect(code).toBe("SIGKILL");
  }
  await expectSame();
});

test("the next run adds changes and deletions, although the service is busy and an answer is cut off", async () => {
  dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(changed), body: { name: "Renamed" } }));
  dataOf(await as.admin.DELETE("/api/prospects/{id}", at(deleted)));
  const trouble: Trouble = (count, response) => {
    if (count === 1) response.writeHead(503, { "Retry-After": "0" }).end();
    if (count === 2) response.writeHead(200, { "Content-Length": "1000" }).write("{", () => response.destroy());
    return count <= 2;
  };
  expect(await run(trouble)).toBe(0);
  await expectSame();
});

test("a damaged file is noticed by its checksum and mended", async () => {
  damage(`UPDATE records SET version = version + 1, data = '{}' WHERE type = 'prospects' AND id = ${changed}`);
  expect(await run()).toBe(0);
  await expectSame();
});

test("after a 410, the records of the new snapshot replace all others, although their versions are lower", async () => {
  damage("UPDATE records SET version = version * 2, data = '{}' WHERE type = 'notes'");
  damage("INSERT INTO records SELECT type, 1, version, generation, data FROM records WHERE type = 'notes' LIMIT 1");
  const gone: Trouble = (count, response) => count === 1 && response.writeHead(410).end("{}").writableEnded;
  expect(await run(gone)).toBe(0);
  await expectSame();
});

test("a key that is refused ends the run with an error", async () => {
  const refused: Trouble = (_, response) => response.writeHead(401).end("{}").writableEnded;
  expect(await run(refused)).toBe(1);
});
