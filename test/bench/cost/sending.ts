/** Sends the measured requests. Each answer of the local service says what its request has cost. */
import { type IncomingMessage, request as open } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";

/** What a request has used. A round is one request to the table, or several concurrent ones. */
export interface TableUsage {
  readonly readUnits: number;
  readonly writeUnits: number;
  readonly rounds: number;
}

export interface Answer {
  readonly text: string;
  /** Bytes on the wire: status line, headers and compressed body. */
  readonly bytes: number;
  readonly etag: string | undefined;
  readonly table: TableUsage;
}

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly etag?: string | undefined;
}

/** Headers that only the local service sends. They are not counted as bytes of the answer. */
const LOCAL_HEADERS = new Set(["server-timing", "keep-alive"]);

export type Send = (sent: Sent) => Promise<Answer>;

/** Returns a function that sends a request with the token. The function throws an error if the service refuses the request. */
export const sendTo =
  (url: string, token: string): Send =>
  async ({ method, path, body, etag }) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "accept-encoding": "gzip",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(etag !== undefined && { "if-none-match": etag }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = open(`${url}${path}`, { method, headers }, resolve).once("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
    const response = await promise;
    const whole = await buffer(response);
    const text = (response.headers["content-encoding"] === "gzip" ? gunzipSync(whole) : whole).toString();
    const status = Number(response.statusCode);
    if (status >= 300 && status !== 304) throw new Error(`${method} ${path} answered ${status}: ${text}`);
    const used = String(response.headers["server-timing"]);
    return { text, bytes: headBytes(response) + whole.length, etag: response.headers.etag, table: tableUsage(used) };
  };

/** The header `Server-Timing` names only what the request has used. A value that it does not name is 0. */
function tableUsage(header: string): TableUsage {
  const of = (name: string): number => Number(new RegExp(`${name};dur=([\\d.]+)`).exec(header)?.[1] ?? 0);
  return { readUnits: of("read-units"), writeUnits: of("write-units"), rounds: of("rounds") };
}

function headBytes({ statusCode, statusMessage, headersDistinct }: IncomingMessage): number {
  const lines = Object.entries(headersDistinct)
    .filter(([name]) => !LOCAL_HEADERS.has(name))
    .flatMap(([name, values = []]) => values.map((value) => `${name}: ${value}\r\n`));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`.length;
}
