/** Tests that a connection to a receiver is reused only for the same URL, and is replaced after the receiver has closed it. */
import { Socket } from "node:net";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import * as limits from "#shared/limits.ts";
import { closeAfterEach, http, send, tcp } from "../harness/listening.ts";

closeAfterEach();

test("an idle connection to a receiver is closed", async () => {
  const closed = Promise.withResolvers<void>();
  const receiver = await tcp((socket) => {
    socket.on("data", () => void socket.write(ANSWER));
    socket.on("end", () => closed.resolve());
  });
  expect(await send(receiver)).toMatchObject({ status: 204 });
  await closed.promise;
});

const ANSWER = "HTTP/1.1 204 No Content\r\n\r\n";

describe("the connection to a receiver", () => {
  // The service closes a connection that is idle for a second. A busy machine may be slower, so the tests turn this limit off.
  beforeEach(() => {
    const timeout = vi.spyOn(Socket.prototype, "setTimeout").mockReturnThis();
    onTestFinished(() => timeout.mockRestore());
  });

  /** Starts a receiver that counts requests. `behave` gets the number of the request on its connection, counted from 1. */
  const counted = async (behave: (socket: Socket, request: number) => void) => {
    let requests = 0;
    const receiver = await tcp((socket) => {
      let request = 0;
      socket.on("data", () => {
        requests++;
        behave(socket, ++request);
      });
    });
    return { ...receiver, requests: () => requests };
  };

  test("is reused: twelve exchanges, four at a time, need four connections", async () => {
    const receiver = await counted((socket) => void socket.write(ANSWER));
    for (let round = 0; round < 3; round++) {
      const exchanges = await Promise.all(Array.from({ length: 4 }, () => send(receiver)));
      expect(exchanges.map(({ status }) => status)).toEqual([204, 204, 204, 204]);
    }
    expect({ connections: receiver.count(), requests: receiver.requests() }).toEqual({ connections: 4, requests: 12 });
  });

  test.each<[string, (socket: Socket) => void]>([
    ["closed", (socket) => void socket.end()],
    ["reset", (socket) => void socket.resetAndDestroy()],
  ])("is replaced if the receiver has %s it while it was idle", async (_, end) => {
    const receiver = await counted((socket, request) => (request === 1 ? void socket.write(ANSWER) : end(socket)));
    for (let i = 0; i < 3; i++) expect(await send(receiver)).toMatchObject({ status: 204, error: null });
    // The second exchange finds that the first connection is closed, and opens another one for its retry. The connection of a retry is
    // never reused.
    expect({ connections: receiver.count(), requests: receiver.requests() }).toEqual({ connections: 3, requests: 4 });
  });

  test("is never shared between two URLs of one host", async () => {
    const receiver = await counted((socket) => void socket.write(ANSWER));
    for (const path of ["a", "b", "a", "b"]) {
      expect(await send({ ...receiver, url: `${receiver.url}${path}` })).toMatchObject({ status: 204 });
    }
    expect(receiver.count()).toBe(2);
  });

  test("is not replaced if it fails when it is new or during an answer, because the receiver has caused such a failure", async () => {
    const first = await counted((socket) => void socket.resetAndDestroy());
    expect(await send(first)).toMatchObject({ status: null });
    expect(first.requests()).toBe(1);
    for (const beginning of ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 500 Oops\r\nX: "]) {
      const begun = await counted((socket, request) =>
        request === 1 ? void socket.write(ANSWER) : void socket.end(beginning),
      );
      expect(await send(begun)).toMatchObject({ status: 204 });
      expect((await send(begun)).status).toBeNull();
      expect(begun.requests()).toBe(2);
    }
  });

  test("is not reused after `Connection: close` or after an answer above the limit", async () => {
    const closing = await http((response) => void response.writeHead(204, { Connection: "close" }).end());
    const sockets = new Set<Socket>();
    const endless = await http((response, request) => {
      sockets.add(request.socket);
      response.write("x".repeat(limits.answerBytes + 1));
    });
    for (const receiver of [closing, endless]) {
      for (let i = 0; i < 2; i++) expect((await send(receiver)).error).toBeNull();
    }
    expect(sockets.size).toBe(2);
  });

  test("is not reused above its maximum age", async () => {
    const clock = vi.spyOn(performance, "now");
    const from = performance.now();
    const receiver = await counted((socket) => void socket.write(ANSWER));
    for (const ageMs of [0, limits.connectionAgeMs, limits.connectionAgeMs + 1, 0, 1]) {
      clock.mockReturnValue(from + ageMs);
      expect(await send(receiver)).toMatchObject({ status: 204 });
    }
    clock.mockRestore();
    expect(receiver.count()).toBe(2);
  });
});
