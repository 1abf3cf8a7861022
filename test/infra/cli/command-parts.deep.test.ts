/** Tests small parts of the commands: the pace of table reads, the report of an erasure, signals, and the waits of `npm run csv`. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import yoctoSpinner from "yocto-spinner";
import { onSignal } from "../../../infra/cli/command/signals.ts";
import { remainsUntil } from "../../../infra/cli/company/erasure.ts";
import { Pace } from "../../../infra/cli/company/rows.ts";
import { download } from "../../../infra/cli/csv/files.ts";
import { dataOf, openService } from "../../../infra/cli/csv/service.ts";
import { closeAfterEach, http } from "../../harness/listening.ts";

closeAfterEach();

test("calls wait until the units of earlier calls are paid for", async () => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const pace = new Pace(100, async (ms) => {
    vi.setSystemTime(Date.now() + ms);
  });
  const starts: number[] = [];
  for (let i = 0; i < 5; i++) {
    starts.push(Date.now());
    await pace.pay(50);
  }
  expect(starts).toEqual([0, 500, 1_000, 1_500, 2_000]);
});

const erasedAt = "2026-11-01T00:00:00.000Z";

test("the report of an erasure contains the retention times of the deployment, not those of a standard deployment", () => {
  const standard = remainsUntil(erasedAt, { logDays: 90, recoveryDays: 35, backupDays: 0 });
  expect(standard).toMatchObject({
    "log lines, which have ids and no names": "2027-01-30T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-12-06T00:00:00.000Z",
    "AWS Backup": "the plan makes no copies; copies made by hand, or under earlier settings, may remain longer",
  });
  const long = remainsUntil(erasedAt, { logDays: 1_827, recoveryDays: 7, backupDays: 365 });
  expect(long).toMatchObject({
    "log lines, which have ids and no names": "2031-11-02T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-11-08T00:00:00.000Z",
    "AWS Backup": "2027-11-01T00:00:00.000Z; copies made by hand, or under earlier settings, may remain longer",
  });
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

/** Returns what the code of a command needs, and what it prints (`said`). The first message ends the wait for the next try. */
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

test.each([429, 503])("after the answer %i, the command waits as long as the service asks", async (status) => {
  const { endpoint: base } = await http((response, request) => {
    response.setHeader("Content-Type", "application/json");
    if (request.url === "/api/me") response.end('{"company":{"id":1},"user":{"id":2}}');
    else response.writeHead(status, { "Retry-After": "40" }).end("{}");
  });
  const run = newRun();
  const options = { command: "export", base, token: "x", email: undefined, file: "x.csv", filter: {} } as const;
  const { client } = await openService(options, run);
  const params = { path: { id: 1 } };
  await expect(dataOf(client.GET("/api/prospects/exports/{id}", { params }))).rejects.toThrow("aborted");
  expect(run.said).toEqual([
    `the service answered ${status}: trying again, Ctrl-C ends the command; the next try is in 40 s`,
  ]);
});

test("after a busy answer of the bucket, the download waits as long as the bucket asks", async () => {
  const { url } = await http((response) => response.writeHead(503, { "Retry-After": "3600" }).end());
  const run = newRun();
  await expect(download(run, async () => url, "unused.csv")).rejects.toThrow("aborted");
  expect(run.said.join()).toContain("the next try is in 60 s");
});
