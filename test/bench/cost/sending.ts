/** Sends the measured requests. Each answer of the local service says what its request has cost. */
import { get, request as httpRequest, type IncomingMessage } from "node:http";
import { gunzipSync } from "node:zlib";

/**
 * The names of the read units, write units and rounds in the header `Server-Timing`, which the local service adds to each answer. A round
 * is one request to the table, or several concurrent ones.
 */
const timed = { readUnits: "read-units", writeUnits: "write-units", rounds: "rounds" } as const;
export type TableUsage = Readonly<Record<keyof typeof timed, number>>;

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly bytes: number;
  readonly etag: string | undefined;
  readonly table: TableUsage;
}

/** Headers that only the local service sends. They are not counted as bytes of the answer. */
const LOCAL_HEADERS = new Set(["server-timing", "keep-alive"]);

interface Sending {
  readonly body?: unknown;
  readonly etag?: string;
}

export function send(
  url: string,
  token: string,
  method: string,
  path: string,
  { body, etag }: Sending = {},
): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    "accept-encoding": "gzip",
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(etag !== undefined && { "if-none-match": etag }),
  };
  return new Promise((resolve, reject) => {
    const sent = (method === "GET" ? get : httpRequest)(`${url}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => {
        const whole = Buffer.concat(chunks);
        const text = (response.headers["content-encoding"] === "gzip" ? gunzipSync(whole) : whole).toString();
        resolve({
          status: response.statusCode ?? 0,
          text,
          bytes: headBytes(response) + whole.length,
          etag: response.headers.etag,
          table: tableUsage(String(response.headers["server-timing"] ?? "")),
        });
      });
      response.once("error", reject);
    });
    sent.once("error", reject);
    if (method !== "GET") sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function tableUsage(header: string): TableUsage {
  const of = (name: string): number => Number(new RegExp(`${name};dur=([\\d.]+)`).exec(header)?.[1] ?? 0);
  return { readUnits: of(timed.readUnits), writeUnits: of(timed.writeUnits), rounds: of(timed.rounds) };
}

function headBytes({ rawHeaders, statusMessage = "" }: IncomingMessage): number {
  let bytes = "HTTP/1.1 200 \r\n\r\n".length + statusMessage.length;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
    if (!LOCAL_HEADERS.has(name.toLowerCase())) bytes += name.length + value.length + ": \r\n".length;
  }
  return bytes;
}
