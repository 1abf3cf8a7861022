/** Tests that an exchange keeps its limits of time, bytes and memory even if the receiver misbehaves. */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { closeAfterEach, http, send, tcp } from "../harness/listening.ts";

closeAfterEach();

const says = (lines: string) => (socket: Socket) => {
  socket.once("data", () => socket.end(lines));
};
/** Waits for the first bytes of the request. Then sends `first`, and `drop` every 50 ms until the connection closes. */
const drips = (socket: Socket, first: string, drop: string) => {
  socket.once("data", () => {
    socket.write(first);
    const timer = setInterval(() => socket.write(drop), 50);
    socket.on("close", () => clearInterval(timer));
  });
};

/** This test uses the real clock. The tests in deadline.deep.test.ts use a simulated timer, and check the time of the cut. */
test("a receiver that exceeds the deadline in any way is cut off", async () => {
  const late = await Promise.all([
    tcp(() => undefined),
    tcp((socket) => socket.pause()),
    tcp((socket) => drips(socket, "HTTP/1.1 200 OK\r\n", "X-Drip: 1\r\n")),
    tcp((socket) => drips(socket, "HTTP/1.1 200 OK\r\n\r\n", "x")),
    tcp((socket) => drips(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n")),
    tcp((socket) => drips(socket, "", "HTTP/1.1 102 Processing\r\n\r\n")),
    tcp((socket) => drips(socket, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", "")),
  ]);
  const exchanges = await Promise.all(late.map((receiver, i) => send(receiver, "x".repeat(i === 1 ? 20_000_000 : 2))));
  for (const { status, error, answer } of exchanges) {
    expect({ status, error, answer }).toEqual({
      status: null,
      error: `no answer within ${limits.exchangeMs} ms`,
      answer: "",
    });
  }
  expect(late.map(({ count }) => count())).toEqual(late.map(() => 1));
});

describe("a receiver that", () => {
  test.each<[string, (socket: Socket) => void, RegExp]>([
    ["resets the connection", (socket) => void socket.resetAndDestroy(), /ECONNRESET|hang up/],
    ["closes without a word", says(""), /hang up/],
    ["closes within the headers", says("HTTP/1.1 200 OK\r\nX: "), /hang up|ECONNRESET|HPE/],
    ["closes after the headers", says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), /broke off|aborted/],
    ["closes within the body", says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), /broke off|aborted/],
    ["speaks no HTTP", says("220 smtp.example.com\r\n"), /HPE_|Parse Error/],
    ["sends endless headers", says(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}\r\n\r\n`), /HPE_HEADER_OVERFLOW/],
    [
      "switches protocols",
      says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
      /closed without/,
    ],
  ])("%s causes an exchange without an answer", async (_, behave, error) => {
    const exchange = await send(await tcp(behave));
    expect(exchange).toMatchObject({ status: null, answer: "", retryAfter: undefined });
    expect(exchange.error).toMatch(error);
  });

  test.each([300, 301, 302, 303, 307, 308, 304])("answers %i is not followed", async (status) => {
    const decoy = await http((response) => void response.end());
    const receiver = await http((response) => void response.writeHead(status, { Location: decoy.url }).end());
    expect(await send(receiver)).toMatchObject({ status, error: null });
    expect(decoy.count()).toBe(0);
  });

  test("sends interim responses is recorded with its final response", async () => {
    const receiver = await tcp(
      says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
    );
    expect(await send(receiver)).toMatchObject({ status: 204, error: null, answer: "" });
  });

  test("sends a gzip bomb has its answer stored without decompression", async () => {
    const bomb = gzipSync(Buffer.alloc(100_000_000));
    let asked: string | undefined;
    const receiver = await http((response, request) => {
      asked = request.headers["accept-encoding"];
      response.writeHead(200, { "Content-Encoding": "gzip", "Content-Length": bomb.length }).end(bomb);
    });
    const { status, answer } = await send(receiver);
    expect(status).toBe(200);
    expect(asked).toBe("identity");
    expect(Buffer.byteLength(answer)).toBeLessThanOrEqual(3 * limits.answerKeptBytes);
    expect(Buffer.from(answer, "utf8").length).toBeGreaterThan(0);
  });

  test("sends an endless answer is read up to 16 KB; 4 KB are stored", async () => {
    const closed = Promise.withResolvers<number>();
    const receiver = await http((response) => {
      response.writeHead(200);
      let written = 0;
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(1_000))) written += 1_000;
      };
      response.on("drain", more);
      response.on("close", () => closed.resolve(written));
      more();
    });
    const { status, answer } = await send(receiver);
    expect({ status, answer }).toEqual({ status: 200, answer: "x".repeat(limits.answerKeptBytes) });
    // `closed` resolves with the number of bytes that the receiver could write before the connection was closed. `post` reads only 16 KB of
    // them, but the socket buffers of both sides also take bytes.
    expect(await closed.promise).toBeLessThan(20_000_000);
  });
});

const Memory = z.object({ rest: z.number(), peak: z.number(), statuses: z.array(z.int()) });

test("ten attempts with endless answers take at most 10 MB above the memory at rest", async () => {
  const receiver = await http((response, request) => {
    const isEndless = request.url === "/endless";
    response.writeHead(200);
    if (!isEndless) return void response.end("ok");
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
    };
    response.on("drain", more);
    more();
  });
  const script = fileURLToPath(new URL("./endless-process.ts", import.meta.url));
  const child = spawn(process.execPath, ["--expose-gc", script, receiver.url], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { rest, peak, statuses } = Memory.parse(JSON.parse(await text(child.stdout)));
  expect(statuses).toEqual(Array.from({ length: 10 }, () => 200));
  expect(peak - rest).toBeLessThanOrEqual(10 * 1024 * 1024);
});

test("the first Retry-After of an answer is passed on as it is", async () => {
  const receiver = await tcp(says("HTTP/1.1 503 X\r\nRetry-After: -5 \r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n"));
  expect(await send(receiver)).toMatchObject({ status: 503, retryAfter: "-5" });
});
