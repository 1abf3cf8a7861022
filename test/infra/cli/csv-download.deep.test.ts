/** Tests downloads of files that change meanwhile, and the waits that servers ask for with `Retry-After`. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { dataOf, openService, retryAfterMs } from "../../../infra/cli/csv/service.ts";
import { download } from "../../../infra/cli/csv/transfer.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
 * Downloads a file from a simulated bucket. Each step answers one request. Returns the texts that the saving function got, the messages of
 * the command, its error, and the headers `Range` and `If-Match` of each request.
 */
async function downloaded(steps: readonly Step[]) {
  const asked: IncomingMessage["headers"][] = [];
  const url = await serve((request, response) => {
    asked.push(request.headers);
    (steps[Math.min(asked.length, steps.length) - 1] ?? whole("?", ""))(request, response);
  });
  const run = newRun();
  const saved: string[] = [];
  const error = await download(
    run,
    async () => url,
    async (bytes) => {
      saved.push(await text(bytes));
    },
  ).catch((reason: unknown) => reason);
  const conditions = asked.map(({ range, "if-match": condition }) => [range, condition]);
  return { saved, said: run.said, error, conditions };
}

const whole =
  (etag: string, content: string): Step =>
  (_, response) => {
    response.writeHead(200, { etag, "content-length": content.length }).end(content);
  };
const rest =
  (etag: string, content: string): Step =>
  (_, response) => {
    response.writeHead(206, { etag, "content-length": content.length }).end(content);
  };
/** Sends four bytes of the content, and then breaks the connection. */
const broken =
  (etag: string, content: string): Step =>
  (_, response) => {
    response.writeHead(200, { etag, "content-length": content.length });
    response.write(content.slice(0, 4), () => setImmediate(() => response.destroy()));
  };
const refused =
  (status: number): Step =>
  (_, response) => {
    response.writeHead(status).end();
  };

const AGAIN = "the file in the bucket has changed: the download begins again";

test("a broken download continues only with the same file", async () => {
  const { saved, conditions, said } = await downloaded([broken('"1"', "old file"), rest('"1"', "file")]);
  expect(saved).toEqual(["old file"]);
  expect(conditions).toEqual([
    [undefined, undefined],
    ["bytes=4-", '"1"'],
  ]);
  expect(said).not.toContain(AGAIN);
});

test.each<[string, Step]>([
  ["answers 412", refused(412)],
  ["sends the rest of the new file", rest('"2"', "-new")],
  ["answers 416, because the new file is shorter", refused(416)],
])("a download begins again if the file has changed and the bucket %s", async (_, step) => {
  const { saved, conditions, said } = await downloaded([broken('"1"', "old file"), step, whole('"2"', "new")]);
  expect(saved).toEqual(["new"]);
  expect(conditions.at(-1)).toEqual([undefined, undefined]);
  expect(said).toContain(AGAIN);
});

test("a download ends if the file changes each time", async () => {
  const steps = Array.from({ length: 20 }, () => [broken('"1"', "old file"), refused(412)]).flat();
  const { error, conditions } = await downloaded(steps);
  expect(error).toMatchObject({ code: "cutOff", message: "the file in the bucket changes again and again" });
  expect(conditions).toHaveLength(8);
});

test("Retry-After is read as seconds and as a date, and counts as at most a minute", () => {
  const now = Date.parse("2026-11-24T12:00:00Z");
  const texts = ["7", " 7 ", "Tue, 24 Nov 2026 12:00:09 GMT", "3600", "9".repeat(400), "Wed, 25 Nov 2026 12:00:00 GMT"];
  expect(texts.map((header) => retryAfterMs(header, now))).toEqual([7_000, 7_000, 9_000, 60_000, 60_000, 60_000]);
  const none = [undefined, null, "", "soon", "-5x", "Tue, 24 Nov 2026 11:00:00 GMT"];
  expect(none.map((header) => retryAfterMs(header, now))).toEqual([0, 0, 0, 0, 0, 0]);
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
  const save = async (bytes: AsyncIterable<Uint8Array>): Promise<void> => {
    await text(bytes);
  };
  await expect(download(run, async () => url, save)).rejects.toThrow("aborted");
  expect(run.said.join()).toContain("the next try is in 60 s");
});
