/**
 * Tests `npm start` if the npm package with the DynamoDB server is not installed. The package is optional: npm installs it only on the
 * platforms that it supports.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { connectDynamoDb, freePort } from "../../../infra/local/engines/dynamodb.ts";

const folder = mkdtempSync(join(tmpdir(), "canvassing-no-engine-"));

// A copy of the project, whose `node_modules` has links to all installed packages except the DynamoDB server.
for (const name of ["infra", "functions", "shared", "docs", "package.json", "package-lock.json", "cdk.json"]) {
  cpSync(join(root, name), join(folder, name), { recursive: true });
}
mkdirSync(join(folder, "node_modules"));
for (const name of readdirSync(join(root, "node_modules"))) {
  if (name !== "@dynoxide") symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
}

test("without the engine, three lines say what is missing, what to set, and the command", async () => {
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
