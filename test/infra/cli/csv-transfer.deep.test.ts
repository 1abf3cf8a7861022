/** Tests that `npm run csv` waits as long as servers ask with `Retry-After`, at most a minute. */
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import yoctoSpinner from "yocto-spinner";
import { download } from "../../../infra/cli/csv/files.ts";
import { dataOf, openService } from "../../../infra/cli/csv/service.ts";
import { closeAfterEach, http } from "../../harness/listening.ts";

closeAfterEach();

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
