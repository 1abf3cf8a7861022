/**
 * Tests `npm start` if the npm package with the DynamoDB server is not installed. The package is optional: npm installs it only on the
 * platforms that it supports.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { connectDynamoDb, freePort, startDynamoDb } from "../../../infra/local/engines/dynamodb.ts";

const folder = mkdtempSync(join(tmpdir(), "canvassing-no-engine-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a copy of the project. Its `node_modules` has links to all installed packages except the DynamoDB server. */
beforeAll(() => {
  for (const name of ["infra", "functions", "shared", "docs", "package.json", "package-lock.json", "cdk.json"]) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== "@dynoxide") symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
});

function npmStart(env: Record<string, string> = {}) {
  const child = spawn("npm", ["start", "--silent"], {
    cwd: folder,
    env: { ...process.env, PORT: "0", DATA_DIR: join(folder, "data"), ...env },
  });
  return { child, ended: once(child, "exit") };
}

test("without the engine, three lines say what is missing, what to set, and the command", async () => {
  const { child, ended } = npmStart();
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

/** Resolves when the output of the process matches `pattern`. If the process ends before that, rejects with its output. */
async function untilPrinted(stream: Readable, pattern: RegExp): Promise<RegExpExecArray> {
  let printed = "";
  for await (const chunk of stream) {
    printed += String(chunk);
    const found = pattern.exec(printed);
    if (found !== null) return found;
  }
  throw new Error(printed);
}

test("without the engine, the service waits until the server at DYNAMODB_ENDPOINT has started", async () => {
  const server = await startDynamoDb(undefined);
  const { hostname, port } = new URL(server.endpoint);
  // The server is ready, but its clients reach it only through this proxy, which at first closes all connections. The proxy keeps its port
  // from the beginning, so that no other program can take the port meanwhile.
  let isOpen = false;
  const late = createServer((socket) => {
    if (!isOpen) return void socket.destroy();
    const upstream = connect(Number(port), hostname);
    socket.pipe(upstream).pipe(socket);
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
  });
  late.listen(0, "127.0.0.1");
  await once(late, "listening");
  const address = late.address();
  const endpoint = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const { child, ended } = npmStart({ DYNAMODB_ENDPOINT: endpoint });
  await untilPrinted(child.stderr, new RegExp(`^waiting for the DynamoDB server at ${endpoint}$`, "m"));
  await wait(3_000);
  isOpen = true;
  const [, url = ""] = await untilPrinted(child.stdout, /^ready (\S+)$/m);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  child.kill("SIGTERM");
  expect((await ended)[0]).toBe(0);
  late.close();
  await server.stop();
});

test("if no server answers at DYNAMODB_ENDPOINT, the error names the URL and the cause", async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  await expect(connectDynamoDb(endpoint, 300)).rejects.toThrow(
    `no DynamoDB server answers at ${endpoint}: connect ECONNREFUSED`,
  );
});
