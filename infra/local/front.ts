/** The one listening port: bound before anything else is built, served by the gateway once that exists. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { urlAt } from "./address.ts";
import { codeOf, LocalError } from "./error.ts";

export interface Front {
  readonly server: Server;
  /** `http://127.0.0.1:3000`: the address that clients on this machine use. */
  readonly url: string;
  serve(handler: (request: IncomingMessage, response: ServerResponse) => void): void;
  stop(): Promise<void>;
}

/** A client has this long to send its request; API Gateway is no more patient. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than a busy client forgets to use a connection: one that is closed at that moment loses its next request. */
const KEEP_ALIVE_MS = 65_000;
/** More than API Gateway takes, so that an absurd token is refused by the function that would have to read it. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Answers under way get this long when the service stops. */
const DRAIN_MS = 3_000;

export async function bind(port: number, host: string): Promise<Front> {
  let handler = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(503, { "Content-Type": "text/plain", "Retry-After": "1" }).end("the service is starting\n");
  };
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false,
    },
    (request, response) => handler(request, response),
  );
  // An expectation that cannot be met is ignored, as it is at API Gateway.
  server.on("checkExpectation", (request, response) => handler(request, response));
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") throw new LocalError(`port ${port} is in use: set PORT to another one`);
    throw new LocalError(`cannot listen on ${host}:${port} (${codeOf(error) ?? "unknown"})`, { cause: error });
  }
  let stopped: Promise<void> | undefined;
  return {
    server,
    url: urlOf(server, host),
    serve(next) {
      handler = next;
    },
    stop() {
      stopped ??= close(server);
      return stopped;
    },
  };
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  if (address === null || typeof address === "string") throw new LocalError("the server has no port");
  return urlAt(host, address.port);
}

async function close(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(timer);
}
