/** Tests that the CSV commands resume killed imports, repeat broken downloads, wait as long as servers ask, and end at signals. */
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import yoctoSpinner from "yocto-spinner";
import { onSignal } from "../../../infra/cli/command/signals.ts";
import { dataOf, download, openService } from "../../../infra/cli/csv/service.ts";
import { closeAfterEach, http } from "../../harness/listening.ts";
import { csvExportStage, csvImportStage, DOWNLOAD, IMPORTS, ROWS } from "./csv-stage.ts";

closeAfterEach();

test("the same command resumes an import that was killed while it sent and while it waited", async () => {
  const { proxy, newFile, run, start, present } = await csvImportStage();
  const { file, city } = newFile();
  proxy.fail("PUT /uploads", { hold: "request" });
  const sending = start(file);
  await proxy.received("PUT /uploads");
  sending.child.kill("SIGKILL");
  await sending.ended;
  const waiting = start(file);
  await proxy.received("PUT /uploads");
  proxy.fail(`GET ${IMPORTS}/`, { hold: "request" });
  await proxy.received(`GET ${IMPORTS}/`);
  waiting.child.kill("SIGKILL");
  await waiting.ended;
  const last = await run(file);
  expect(last).toMatchObject({ code: 0 });
  expect(await present(city)).toBe(ROWS);
});

test("an export repeats a broken download until the file is complete", async () => {
  const { proxy, whole, newFile, run } = await csvExportStage();
  const file = newFile();
  proxy.fail(DOWNLOAD, { answer: 503 }, { cut: "answer", after: 1_000 }, { lose: "answer" }, { shorten: 1_000 });
  const { code, stderr } = await run(file);
  expect(code, stderr).toBe(0);
  expect(readFileSync(file, "utf8")).toBe(whole);
});

/**
 * Returns the abort signal and the spinner that the code of a command needs, and the list `said` of the messages that the command prints.
 * The first message aborts the signal, so the command does not wait for its next try.
 */
function newRun() {
  const interrupt = new AbortController();
  const said: string[] = [];
  const print = vi.spyOn(console, "error").mockImplementation((line: string) => {
    said.push(line);
    interrupt.abort();
  });
  onTestFinished(() => print.mockRestore());
  const spinner = yoctoSpinner({ stream: new PassThrough() });
  onTestFinished(() => void spinner.stop());
  return { said, signal: interrupt.signal, spinner };
}

test("after a busy answer of the service, the command waits as long as the service asks", async () => {
  const { endpoint: base } = await http((response, request) => {
    response.setHeader("Content-Type", "application/json");
    if (request.url === "/api/me") response.end('{"company":{"id":1},"user":{"id":2}}');
    else response.writeHead(503, { "Retry-After": "40" }).end("{}");
  });
  const run = newRun();
  const { client } = await openService(base, "x", run);
  const params = { path: { id: 1 } };
  await expect(dataOf(client.GET("/api/prospects/exports/{id}", { params }))).rejects.toThrow("aborted");
  expect(run.said).toEqual(["the service answered 503: trying again in 40 s, Ctrl-C ends the command"]);
});

test("after a busy answer of the bucket, the download waits as long as the bucket asks", async () => {
  const { url } = await http((response) => response.writeHead(503, { "Retry-After": "3600" }).end());
  const run = newRun();
  await expect(download(run, async () => url, "unused.csv")).rejects.toThrow("aborted");
  expect(run.said.join()).toContain("trying again in 60 s");
});

test("a signal that npm sends again has no effect, and a later signal ends the command at once", () => {
  const signals = new EventEmitter();
  const calls: string[] = [];
  let now = 0;
  onSignal(
    () => calls.push("stop"),
    () => calls.push("end now"),
    { signals, now: () => now },
  );
  signals.emit("SIGINT");
  now = 1_999;
  signals.emit("SIGINT");
  signals.emit("SIGTERM");
  expect(calls).toEqual(["stop"]);
  now = 2_001;
  signals.emit("SIGINT");
  expect(calls).toEqual(["stop", "end now"]);
});
