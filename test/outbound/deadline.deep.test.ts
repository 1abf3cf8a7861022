/** Tests with a simulated timer that an exchange ends at its deadline, whatever the receiver does. */
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import * as limits from "#shared/limits.ts";
import type { Resolve } from "#shared/outbound/dns.ts";
import { post } from "#shared/outbound/post.ts";
import { closeAfterEach, tcp } from "../harness/listening.ts";

let deadlines: { readonly ms: number; readonly end: () => void }[];
closeAfterEach();
beforeEach(() => {
  deadlines = [];
  // Vitest's fake timers do not affect AbortSignal.timeout, so the test replaces this function. The replacement aborts with the same error.
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const controller = new AbortController();
    deadlines.push({ ms, end: () => controller.abort(new DOMException("timed out", "TimeoutError")) });
    return controller.signal;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Starts a receiver. `asked` resolves when the first bytes of a request have arrived. */
async function listen(behave: (socket: Socket) => void) {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const receiver = await tcp((socket) => {
    socket.once("data", () => {
      behave(socket);
      resolve();
    });
  });
  return { ...receiver, asked };
}

/** Number of turns of the event loop in which the deadline must end the exchange. Waiting for another timer would take more turns. */
const TURNS = 50;

async function endsAtDeadline(exchange: ReturnType<typeof post>): Promise<Awaited<ReturnType<typeof post>>> {
  let ended: Awaited<typeof exchange> | undefined;
  void exchange.then((result) => {
    ended = result;
  });
  for (let i = 0; i < TURNS; i++) await turn();
  expect(ended, "ended too early").toBeUndefined();
  expect(deadlines.map(({ ms }) => ms)).toEqual([limits.exchangeMs]);
  for (const { end } of deadlines) end();
  for (let i = 0; i < TURNS && ended === undefined; i++) await turn();
  if (ended === undefined) throw new Error("the exchange has not ended at its deadline");
  return ended;
}

const late = { status: null, error: `no answer within ${limits.exchangeMs} ms`, answer: "", retryAfter: undefined };
const OK = "HTTP/1.1 200 OK\r\n";

describe("one timer ends the exchange at its deadline when a receiver", () => {
  test.each<[string, string]>([
    ["says nothing", ""],
    ["stops within the first line", "HTTP/1.1 2"],
    ["stops within the headers", `${OK}X-Drip: 1\r\n`],
    ["stops after the headers", `${OK}Content-Length: 99\r\n\r\n`],
    ["stops within the body", `${OK}Content-Length: 99\r\n\r\nabc`],
    ["stops within a chunk", `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nab`],
    ["stops before the last chunk", `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n`],
    ["stops after 100 Continue", "HTTP/1.1 100 Continue\r\n\r\n"],
    ["stops after early hints", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"],
    ["stops within what it has gzipped", `${OK}Content-Encoding: gzip\r\nContent-Length: 99\r\n\r\n\u001f`],
  ])("%s", async (_, text) => {
    const receiver = await listen((socket) => void socket.write(text));
    const exchange = post({ url: receiver.url, body: "{}", headers: {} }, "local");
    await receiver.asked;
    expect(await endsAtDeadline(exchange)).toMatchObject(late);
    expect(receiver.count()).toBe(1);
  });

  test("stops reading a large body", async () => {
    const receiver = await listen((socket) => void socket.pause());
    const exchange = post({ url: receiver.url, body: "x".repeat(20_000_000), headers: {} }, "local");
    await receiver.asked;
    expect(await endsAtDeadline(exchange)).toMatchObject(late);
  });

  test("has a name whose look-up never ends", async () => {
    const resolve: Resolve = () => new Promise(() => undefined);
    const exchange = post({ url: "http://never.example/", body: "{}", headers: {} }, "local", resolve);
    expect(await endsAtDeadline(exchange)).toMatchObject(late);
  });
});

test("an exchange that was answered does not wait for a timer", async () => {
  const receiver = await listen((socket) => void socket.end("HTTP/1.1 204 No Content\r\n\r\n"));
  const { status } = await post({ url: receiver.url, body: "{}", headers: {} }, "local");
  expect(status).toBe(204);
  expect(deadlines.map(({ ms }) => ms)).toEqual([limits.exchangeMs]);
});
