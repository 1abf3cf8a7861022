/** Tests the local runtime with a small template: its longest streamed answer, dead letters, and a start while another service ends. */
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { getItem, putItem, sendTo, startFixture, takeFrom } from "./fixture.ts";

const service = await startFixture();
afterAll(() => service.stop());

test("a streamed answer above 200 MB breaks the connection", async () => {
  const answer = await fetch(`${service.url}/streamed?mode=endless`);
  expect(answer.status).toBe(201);
  await expect(answer.arrayBuffer()).rejects.toThrow();
});

test("a message that fails twice is a dead letter with its body, and its neighbour is consumed", async () => {
  await sendTo(service, "Work", "poison");
  await sendTo(service, "Work", "good");
  const seen = ['{"consumed":"good","from":"aws:sqs"}', '{"ticked":{"assume":"messages-lost"}}'];
  expect((await takeFrom(service, "Seen", 2)).toSorted()).toEqual(seen);
  expect(await takeFrom(service, "Dead", 1)).toEqual(["poison"]);
});

test("a data directory is free for the next service while the last one still ends", async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "canvassing-test-"));
  const first = await startFixture(directory);
  await putItem(first, "before");
  const { hostname, port } = new URL(first.url);
  // The ending service waits some seconds for this unfinished request. Meanwhile, the next service starts.
  const unfinished = connect(Number(port), hostname);
  unfinished.on("error", () => undefined);
  await once(unfinished, "connect");
  unfinished.write("POST /things/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  const waits = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const ended = first.stop();
  const second = await startFixture(directory);
  expect(waits.mock.calls).toEqual([[`waiting for process ${process.pid}, which is ending, to release DATA_DIR`]]);
  waits.mockRestore();
  expect(await getItem(second, "before")).toBe(true);
  unfinished.destroy();
  await ended;
  await second.stop();
});
