/** Sends the requests that the cost model measures. Returns the units, rounds and bytes of each request. */
import { type IncomingMessage, request as open } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { accessLogFormat } from "../../../infra/stack/api.ts";
import type { Usage } from "./measured.ts";

export interface Answer {
  readonly text: string;
  readonly etag: string | undefined;
  readonly usage: Omit<Usage, "cpuMs">;
}

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly etag?: string | undefined;
}

/** Headers that only the local service sends, so the cost model does not count their bytes. */
const LOCAL_HEADERS = new Set(["server-timing", "keep-alive"]);

/** Returns a function that sends a request to the service and measures it. The function throws if the service refuses the request. */
export const sendTo =
  (url: string, token: string) =>
  async ({ method, path, body, etag }: Sent): Promise<Answer> => {
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
    // A value that is 0 is missing in the header `Server-Timing`, so 0 is the default.
    const used = (name: string): number =>
      Number(new RegExp(`${name};dur=([\\d.]+)`).exec(String(response.headers["server-timing"]))?.[1] ?? 0);
    const sentBytes = headBytes(response) + whole.length;
    const table = { readUnits: used("read-units"), writeUnits: used("write-units"), rounds: used("rounds") };
    const accessLogBytes = accessLogLine(method, resourceOf(path), sentBytes).length;
    return { text, etag: response.headers.etag, usage: { ...table, sentBytes, accessLogBytes } };
  };

export const resourceOf = (path: string): string => path.replace(/\?.*/, "").replace(/\d+$/, "{id}");

/** Returns the line that API Gateway would write into its access log, with `-` for each variable without a value. */
function accessLogLine(method: string, resource: string, bytes: number): string {
  const values: Record<string, string> = {
    "$context.requestId": "6f5a1c8e-8c5c-4d1c-9d7b-2f1f3d1b8a55",
    "$context.httpMethod": method,
    "$context.resourcePath": resource,
    "$context.status": "200",
    "$context.responseLatency": "24",
    "$context.integrationLatency": "21",
    "$context.responseLength": String(bytes),
    "$context.authorizer.requestId": "0b0b9a53-1f5d-4f0e-8a53-5b8f3f0f2c11",
    "$context.authorizer.companyId": "123456",
    "$context.authorizer.userId": "1234567",
  };
  return accessLogFormat.replaceAll(/\$[\w.]+/g, (name) => values[name] ?? "-");
}

function headBytes({ statusCode, statusMessage, headersDistinct }: IncomingMessage): number {
  const lines = Object.entries(headersDistinct)
    .filter(([name]) => !LOCAL_HEADERS.has(name))
    .flatMap(([name, values = []]) => values.map((value) => `${name}: ${value}\r\n`));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`.length;
}
