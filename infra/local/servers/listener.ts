/**
 * Starts the HTTP servers of the local service. The public port responds with 503 until the gateway is ready. The other servers accept
 * connections from this machine only.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { codeOf } from "../../cli/command/error.ts";
import { urlAt } from "./address.ts";
import { LocalError } from "./error.ts";

/** Time in milliseconds within which a client must send its whole request. API Gateway has the same limit. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Milliseconds after which the server closes an idle connection. Clients stop using it earlier, so none is sending just then. */
const KEEP_ALIVE_MS = 65_000;
/** Maximum size of a request's headers. API Gateway accepts less, but tests send a huge token to the authorizer function. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** When the service stops, running requests have this many milliseconds to finish. */
const DRAIN_MS = 3_000;

/** The `Server-Timing` header of a response that no function produced. */
export const NO_USAGE = [
  "Server-Timing",
  ["read-units", "write-units", "requests", "rounds"].map((name) => `${name};dur=0`).join(", "),
] as const;

export async function bind(port: number, host: string) {
  let handler = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(503, { "Content-Type": "text/plain", "Retry-After": "1" }).end("the service is starting\n");
  };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader(...NO_USAGE);
    handler(request, response);
  };
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      requireHostHeader: false,
    },
    serve,
  );
  // API Gateway ignores an unknown `Expect` header. Without this handler, Node.js would respond with 417.
  server.on("checkExpectation", serve);
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") {
      throw new LocalError(`port ${port} is in use: choose another one, for example PORT=${port + 1} npm start`);
    }
    throw new LocalError(`cannot listen on ${host}:${port} (${codeOf(error) ?? "unknown"})`, { cause: error });
  }
  let stopped: Promise<void> | undefined;
  return {
    server,
    /** The URL for clients on this machine, for example `http://127.0.0.1:3000`. */
    url: urlOf(server, host),
    serve(next: typeof handler): void {
      handler = next;
    },
    stop(): Promise<void> {
      stopped ??= close(server);
      return stopped;
    },
  };
}

export interface LocalServer {
  readonly endpoint: string;
  /** After this call, the running server does not prevent the end of the process. */
  unref(): void;
  stop(): void;
}

/** Starts a server that only this machine can reach. Port 0 means any free port. If the handler rejects, the connection is closed. */
export async function serveOnLoopback(
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>,
  port = 0,
): Promise<LocalServer> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void handler(request, response).catch(() => response.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: urlOf(server, "127.0.0.1"),
    unref: () => void server.unref(),
    stop: () => {
      server.close();
      server.closeAllConnections();
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
