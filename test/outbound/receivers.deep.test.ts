/** Tests that an exchange keeps its limits of bytes even if the receiver misbehaves. deadline.deep.test.ts tests its limit of time. */
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as limits from "#shared/limits.ts";
import { closeAfterEach, http, send, tcp } from "../harness/listening.ts";

closeAfterEach();

const says = (lines: string) => (socket: Socket) => {
  socket.once("data", () => socket.end(lines));
};
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
    // `post` reads only 16 KB, but the socket buffers of both sides also take bytes, so the receiver can send more than 16 KB.
    expect(await closed.promise).toBeLessThan(20_000_000);
  });
});

test("the first Retry-After of an answer is passed on as it is", async () => {
  const receiver = await tcp(says("HTTP/1.1 503 X\r\nRetry-After: -5 \r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n"));
  expect(await send(receiver)).toMatchObject({ status: 503, retryAfter: "-5" });
});
