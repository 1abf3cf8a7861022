/** Tests `npm start` on a machine without a writable cache, free space, the right Node.js or the DynamoDB server. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { refuseFullDisk } from "../../../infra/local/data-dir.ts";
import { connectDynamoDb, freePort } from "../../../infra/local/engines/dynamodb.ts";
import { unwritable } from "../../../infra/local/servers/error.ts";
import { type Started, start } from "./start-process.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-unwritable-"));

/** Starts the service and ends it when it is ready. */
async function startedWith(env: Record<string, string>): Promise<Started> {
  const started = start([], env);
  await started.ready;
  started.child.kill("SIGTERM");
  await once(started.child, "close");
  return started;
}

test("with a cache that cannot be written, the service builds in DATA_DIR, and the next start finds the build there", async () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  const data = join(directory, "data");
  const env = { CI_CACHES: join(file, "caches"), DATA_DIR: data };
  const first = await startedWith(env);
  expect(first.complaints()).toBe(
    `${env.CI_CACHES} cannot be written (ENOTDIR), so this start builds in ${join(data, "caches")}\n`,
  );
  expect(first.output()).toMatch(/^built the functions in /m);
  expect(readdirSync(join(data, "caches")).sort()).toEqual(["bundles", "templates"]);
  const second = await startedWith(env);
  expect(second.complaints()).toBe("");
  expect(second.output()).toMatch(/^copied the functions in /m);
});

test("a full disk leads to one sentence", () => {
  // The file system /proc never has free bytes, so it simulates a full disk.
  expect(() => refuseFullDisk("DATA_DIR", "/proc")).toThrow(
    "DATA_DIR: the disk of /proc has only 0 MB free: free 50 MB, or set DATA_DIR to a directory on another disk",
  );
  expect(() => refuseFullDisk("DATA_DIR", root)).not.toThrow();
});

test.each(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOTDIR"])(
  "the error %s of a write becomes one sentence",
  (code) => {
    expect(unwritable(Object.assign(new Error("write"), { code, path: "/data/tables.db" }))).toBe(
      `/data/tables.db cannot be written (${code}): set DATA_DIR to a directory that this user may write, on a disk with free space`,
    );
  },
);

test("other errors keep their stack trace", () => {
  expect(unwritable(Object.assign(new Error("read"), { code: "ENOENT" }))).toBeUndefined();
});

test("an older Node.js says in one sentence how to get the right one", () => {
  // A module that is loaded first pretends that Node.js is older, because the tests run with the right version.
  const older = `data:text/javascript,${encodeURIComponent('Object.defineProperty(process.versions, "node", { value: "20.20.2" })')}`;
  const check = join(root, "infra/cli/command/node-version.js");
  const run = spawnSync(process.execPath, ["--import", older, "--import", check, "--eval", "console.log(1)"], {
    encoding: "utf8",
  });
  expect([run.status, run.stdout, run.stderr]).toEqual([
    1,
    "",
    "The service needs Node.js 24, and this is Node.js 20.20.2. npm ci installs Node.js 24 unless it ignores scripts: run npm rebuild node --ignore-scripts=false\n",
  ]);
});

test("without the engine, three lines say what is missing, what to set, and the command", async () => {
  const folder = mkdtempSync(join(tmpdir(), "canvassing-no-engine-"));
  // A copy of the project, whose `node_modules` has links to all installed packages except the DynamoDB server.
  for (const name of ["infra", "functions", "shared", "docs", "package.json", "package-lock.json", "cdk.json"]) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== "@dynoxide") symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  const env = { ...process.env, PORT: "0", DATA_DIR: join(folder, "data") };
  const child = spawn("npm", ["start", "--silent"], { cwd: folder, env });
  const ended = once(child, "exit");
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect([(await ended)[0], printed]).toEqual([1, ""]);
  const lines = complaints
    .trim()
    .split("\n")
    .filter((line) => !line.startsWith("npm warn"));
  expect(lines).toEqual([
    expect.stringContaining(`${process.platform}-${process.arch}`),
    expect.stringMatching(/DynamoDB Local or another DynamoDB-compatible server .* DYNAMODB_ENDPOINT/),
    expect.stringMatching(
      /^docker run .* amazon\/dynamodb-local -jar DynamoDBLocal\.jar -sharedDb -inMemory && DYNAMODB_ENDPOINT=http:\/\/127\.0\.0\.1:8000 npm start$/,
    ),
  ]);
});

test("the service waits until the server at DYNAMODB_ENDPOINT has started", async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const waits = vi.spyOn(console, "error").mockImplementation(() => undefined);
  let isReady = false;
  const connected = connectDynamoDb(endpoint).then(() => {
    isReady = true;
  });
  await expect.poll(() => waits.mock.calls).toEqual([[`waiting for the DynamoDB server at ${endpoint}`]]);
  expect(isReady).toBe(false);
  const server = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "application/x-amz-json-1.0" }).end('{"TableNames":[]}');
  });
  server.listen(Number(new URL(endpoint).port), "127.0.0.1");
  await connected;
  waits.mockRestore();
  server.close();
});

test("if no server answers at DYNAMODB_ENDPOINT, the error names the URL and the cause", async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  await expect(connectDynamoDb(endpoint, 300)).rejects.toThrow(
    `no DynamoDB server answers at ${endpoint}: connect ECONNREFUSED`,
  );
});
