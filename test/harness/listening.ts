/** Starts servers on the loopback address that behave as a test requires, and closes them after the test. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { afterEach } from "vitest";
import { post } from "#shared/outbound/post.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";

const cleanUps: (() => void)[] = [];

/** Closes the servers of this module after each test. Call this function once, at the top of a test file that starts such servers. */
export const closeAfterEach = (): void =>
  afterEach(() => {
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
  });

export interface Listening {
  readonly url: string;
  count(): number;
}

export async function http(behave: (response: ServerResponse, request: IncomingMessage) => unknown) {
  let count = 0;
  const { endpoint, stop } = await serveOnLoopback(async (request, response) => {
    count++;
    response.on("error", () => undefined);
    await behave(response, request);
  });
  cleanUps.push(stop);
  return { url: `${endpoint}/`, endpoint, count: () => count };
}

/** Starts a TCP server that passes each connection to `behave`. It can send answers that violate HTTP. */
export async function tcp(behave: (socket: Socket) => void): Promise<Listening> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    behave(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUps.push(() => server.close(), ...[() => sockets.forEach((socket) => void socket.destroy())]);
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  return { url, count: () => sockets.length };
}

export const send = ({ url }: Listening, body = "{}") => post({ url, body, headers: {} }, "local");
