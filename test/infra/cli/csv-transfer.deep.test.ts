/** Tests uploads and downloads of files that change meanwhile, and the waits that servers ask for with `Retry-After`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { contentOf, download } from "../../../infra/cli/csv/files.ts";
import { dataOf, openService, retried, retryAfterMs } from "../../../infra/cli/csv/service.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function newFile(content = ""): string {
  const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "a.csv"), content);
  return join(folder, "a.csv");
}

/**
 * Returns an abort signal and a progress display for a command, and the list `said` of the messages that the command prints. A message that
 * contains `last` interrupts the command.
 */
function newRun(last?: string) {
  const interrupt = new AbortController();
  const said: string[] = [];
  const say = (line: string): void => {
    said.push(line);
    if (last !== undefined && line.includes(last)) interrupt.abort();
  };
  return { said, signal: interrupt.signal, progress: { hint: "", say, show: () => undefined, end: () => undefined } };
}

type Step = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Downloads a file from a simulated bucket. Each step answers one request. Returns the saved text, the messages of the command, and the
 * headers `Range` and `If-Match` of each request.
 */
async function downloaded(steps: readonly Step[]) {
  const asked: IncomingMessage["headers"][] = [];
  const url = await serve((request, response) => {
    asked.push(request.headers);
    steps[asked.length - 1]?.(request, response);
  });
  const run = newRun();
  const path = newFile();
  await download(run, async () => url, path);
  const conditions = asked.map(({ range, "if-match": condition }) => [range, condition]);
  return { saved: readFileSync(path, "utf8"), said: run.said.join(), conditions };
}

const sent =
  (status: number, etag: string, content: string): Step =>
  (_, response) => {
    response.writeHead(status, { etag, "content-length": content.length }).end(content);
  };
/** Sends four bytes of the content, and then breaks the connection. */
const broken =
  (etag: string, content: string): Step =>
  (_, response) => {
    response.writeHead(200, { etag, "content-length": content.length });
    response.write(content.slice(0, 4), () => setImmediate(() => response.destroy()));
  };

test("a broken download continues only with the same file", async () => {
  const { saved, conditions, said } = await downloaded([broken('"1"', "old file"), sent(206, '"1"', "file")]);
  expect(saved).toBe("old file");
  expect(conditions).toEqual([
    [undefined, undefined],
    ["bytes=4-", '"1"'],
  ]);
  expect(said).not.toContain("has changed");
});

test.each<[string, Step]>([
  ["answers 412", sent(412, "", "")],
  ["sends the rest of the new file", sent(206, '"2"', "-new")],
  ["answers 416, because the new file is shorter", sent(416, "", "")],
])("a download begins again if the file has changed and the bucket %s", async (_, step) => {
  const { saved, conditions } = await downloaded([broken('"1"', "old file"), step, sent(200, '"2"', "new")]);
  expect(saved).toBe("new");
  expect(conditions.at(-1)).toEqual([undefined, undefined]);
});

test("Retry-After counts as at most a minute", () => {
  expect(["7", "3600", "9".repeat(400)].map(retryAfterMs)).toEqual([7_000, 60_000, 60_000]);
  expect([undefined, null, "", "soon", "-5x"].map(retryAfterMs)).toEqual([0, 0, 0, 0, 0]);
});

test.each([429, 503])("after the answer %i, the command waits as long as the service asks", async (status) => {
  const base = await serve((request, response) => {
    response.setHeader("Content-Type", "application/json");
    if (request.url === "/api/me") response.end('{"company":{"id":1},"user":{"id":2}}');
    else response.writeHead(status, { "Retry-After": "40" }).end("{}");
  });
  const run = newRun("the next try");
  const options = { command: "export", base, token: "x", email: undefined, file: "x.csv", filter: {} } as const;
  const { client } = await openService(options, run);
  const params = { path: { id: 1 } };
  await expect(dataOf(client.GET("/api/prospects/exports/{id}", { params }))).rejects.toThrow("aborted");
  expect(run.said).toEqual([
    `the service answered ${status}: trying again, Ctrl-C ends the command; the next try is in 40 s`,
  ]);
});

test("after a busy answer of the bucket, the download waits as long as the bucket asks", async () => {
  const url = await serve((_, response) => response.writeHead(503, { "Retry-After": "3600" }).end());
  const run = newRun("the next try");
  await expect(download(run, async () => url, newFile())).rejects.toThrow("aborted");
  expect(run.said.join()).toContain("the next try is in 60 s");
});

test.each([
  [10, undefined],
  [11, "the file has changed during the upload"],
  [9, "the file has changed during the upload"],
])("a file of ten bytes is uploaded as %i bytes with the error %s", async (bytes, fault) => {
  let received = 0;
  const url = await serve((request, response) => {
    request.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    request.on("end", () => response.end());
  });
  const file = newFile("name\nAnna\n");
  const headers = { "content-length": String(bytes) };
  const send = () =>
    fetch(url, { method: "PUT", headers, body: contentOf(file, bytes, () => undefined), duplex: "half" });
  const error: unknown = await retried(newRun(), { server: "the bucket" }, send).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (fault === undefined) expect({ error, received }).toEqual({ error: undefined, received: 10 });
  else expect(error).toMatchObject({ kind: "final", message: fault });
  if (bytes < 10) expect(received).toBeLessThan(bytes);
});
