/**
 * Two servers for tests. The first is a proxy between the tests and their local service. It forwards everything without changes, and passes
 * a copy of each request with its answer to the test run. The second answers requests with such copied answers.
 */
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { pipeline } from "node:stream";

/** A request to the local service, and its answer. The headers are in the form of `rawHeaders` of Node: name, value, name, value. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly answer: { readonly status: number; readonly headers: readonly string[]; readonly body: Buffer };
}

/**
 * The server closes a connection that has been idle for this time. Clients close idle connections earlier. Otherwise a client could send a
 * request on a connection that the server is just closing.
 */
export const KEEP_ALIVE_MS = 65_000;

/** Returns a server that forwards each request to `target`. It calls `onExchange` after each complete answer. */
export function copying(target: string, onExchange: (exchange: Exchange) => void): Server {
  const { hostname, port } = new URL(target);
  return createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    const { method = "GET", url: path = "/", rawHeaders: headers } = incoming;
    const sent = bytesOf(incoming);
    const upstream = request({ hostname, port, method, path, headers }, (answer) => {
      const { statusCode: status = 0, rawHeaders } = answer;
      const received = bytesOf(answer);
      outgoing.writeHead(status, rawHeaders);
      pipeline(answer, outgoing, (error) => {
        // The service may answer before it has read the whole request body. The rest of the body is then read here, because the copy must
        // contain it.
        incoming.resume();
        if (error) return;
        void Promise.all([sent, received]).then(([body, copy]) =>
          onExchange({ method, path, headers, body, answer: { status, headers: rawHeaders, body: copy } }),
        );
      });
    });
    upstream.on("error", () => {
      if (!outgoing.headersSent) outgoing.destroy();
    });
    outgoing.on("close", () => {
      if (!outgoing.writableFinished) upstream.destroy();
    });
    incoming.pipe(upstream);
  });
}

/** Resolves with all bytes of a body that other code also reads. Never resolves if the connection breaks before the end. */
function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  message.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => message.on("end", () => resolve(Buffer.concat(chunks))));
}

/** The name of a request header. Its value is the key of the entry in `answers` that the server below must send. */
export const EXCHANGE = "x-exchange";

/** Returns a server that sends each answer in `answers` once. The header `EXCHANGE` of a request says which answer the server sends. */
export const repeating = (answers: Map<string, Exchange["answer"]>): Server =>
  createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    const name = String(incoming.headers[EXCHANGE]);
    const answer = answers.get(name);
    answers.delete(name);
    incoming.resume();
    if (answer === undefined) return outgoing.writeHead(500).end();
    return outgoing.writeHead(answer.status, endToEnd(answer.headers)).end(answer.body);
  });

/** Returns the headers that do not concern the connection or the length of the body. */
export const endToEnd = (headers: readonly string[]): string[] =>
  headers.filter(
    (_, i) => !/^(?:connection|keep-alive|transfer-encoding|content-length|expect)$/i.test(headers[i - (i % 2)] ?? ""),
  );
