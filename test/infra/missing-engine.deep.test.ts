/**
 * Tests `npm start` if the npm package with the DynamoDB server is not installed. The package is optional: npm installs it only on the
 * platforms that it supports.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { startDynamoDb } from "../../infra/local/dynamodb.ts";

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
      /^docker run .* amazon\/dynamodb-local && DYNAMODB_ENDPOINT=http:\/\/127\.0\.0\.1:8000 npm start$/,
    ),
  ]);
});

test("the service starts without the engine if DYNAMODB_ENDPOINT names a server", async () => {
  const server = await startDynamoDb(undefined);
  const { child, ended } = npmStart({ DYNAMODB_ENDPOINT: server.endpoint });
  let printed = "";
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    if (/^ready /m.test(printed)) break;
  }
  const [, url = ""] = /^ready (\S+)$/m.exec(printed) ?? [];
  expect((await fetch(`${url}/health`)).status).toBe(200);
  child.kill("SIGTERM");
  expect((await ended)[0]).toBe(0);
  await server.stop();
});
