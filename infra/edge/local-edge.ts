/** Does for the local service what CloudFront does in a deployment: serves the console's files, and runs the same edge functions. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import { gzip } from "node:zlib";
import * as z from "zod/mini";
import {
  API_PATHS,
  ASSETS,
  CONFIG,
  type ConsoleSettings,
  cacheControl,
  consoleConfig,
  consoleFiles,
  contentSecurityPolicy,
  edgeFunction,
  pageHeaders,
} from "./console-site.ts";

type Headers = ReadonlyMap<string, readonly string[]>;

interface PageRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly acceptEncoding: string | undefined;
}

export interface Edge {
  /** Returns the headers with which the API receives a request. */
  readonly apiHeaders: (request: { verb: string; path: string; headers: Headers }) => Headers;
  isForConsole(request: PageRequest): boolean;
  /** Sends the response to a request for the console. Never rejects. */
  serve(request: PageRequest, response: ServerResponse): Promise<void>;
}

interface Site {
  /** The URL of the console, to which the browser returns after a sign-in. */
  readonly consoleUrl: string;
  /** The origin of presigned URLs, which the console's content security policy must allow. */
  readonly uploadOrigin: string;
  readonly settings: ConsoleSettings;
}

export function createEdge({ consoleUrl, uploadOrigin, settings }: Site): Edge {
  const { port, host: ownHost } = new URL(consoleUrl);
  const pageRequest = loadFunction(edgeFunction("page-request", false), z.union([EdgeRequest, EdgeResponse]));
  const patterns = API_PATHS.map((path) => new RegExp(`^${path.replaceAll(".", "\\.").replaceAll("*", ".*")}$`));
  const headers = { ...pageHeaders, "Content-Security-Policy": contentSecurityPolicy(uploadOrigin, settings.basemap) };
  const config = consoleConfig(settings);
  const answerOf = answering(async (file) => (file === CONFIG ? config : fileOf(file)));
  return {
    apiHeaders: apiHeaders(edgeFunction("api-request", false)),
    // The console and the API share one port. Requests with other methods than GET and HEAD are always for the API.
    isForConsole: ({ method, target }) =>
      (method === "GET" || method === "HEAD") && !patterns.some((pattern) => pattern.test(pathOf(target))),
    async serve({ method, target, host, acceptEncoding }, response) {
      const send = (status: number, more: object, body: string | Buffer): void => {
        response.writeHead(status, { ...more });
        response.end(method === "HEAD" ? undefined : body);
      };
      const result = pageRequest(eventOf(method, pathOf(target), new Map()));
      if ("statusCode" in result) {
        const given = Object.entries(result.headers).map(([name, { value }]) => [name, value]);
        return send(result.statusCode, Object.fromEntries(given), result.body.data);
      }
      // A sign-in ends at the host of `consoleUrl`, for example 127.0.0.1. The browser does not send the cookies of `localhost` to that
      // host, so requests to `localhost` are redirected to `consoleUrl` before the sign-in.
      if (host === `localhost:${port}` && host !== ownHost)
        return send(307, { Location: `${consoleUrl}${target}` }, "");
      const file = result.uri.slice(1);
      const answer = await answerOf(file, /\bgzip\b/.test(acceptEncoding ?? ""));
      if (answer === undefined) {
        // Respond with 403 as in a deployment: S3 does so for a missing file, because CloudFront has no right to list the bucket.
        const kind = { "Content-Type": "text/plain", "Cache-Control": "no-cache" };
        return send(403, { ...headers, ...kind }, "the console has no such file\n");
      }
      return send(200, { ...headers, ...answer.headers }, answer.body);
    },
  };
}

/** Like CloudFront, the local service compresses a file of these types if it has at least `COMPRESSED_BYTES` bytes. */
const COMPRESSED = /^(?:text|application\/(?:json|manifest\+json)|image\/svg)/;
const COMPRESSED_BYTES = 1_000;
const zipped = promisify(gzip);

interface FileAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/** Returns a function that makes the answer with a file. It compresses an asset only once, because assets never change. */
function answering(contentOf: (file: string) => Promise<string | Buffer | undefined>) {
  const kept = new Map<string, FileAnswer>();
  return async (file: string, isZipped: boolean): Promise<FileAnswer | undefined> => {
    const known = isZipped ? kept.get(file) : undefined;
    const body = known === undefined ? await contentOf(file) : undefined;
    if (known !== undefined || body === undefined) return known;
    const type = mediaTypes[extname(file)] ?? "application/octet-stream";
    const headers = { "Content-Type": type, "Cache-Control": cacheControl(file), Vary: "Accept-Encoding" };
    if (!isZipped || !COMPRESSED.test(type) || body.length < COMPRESSED_BYTES) return { headers, body };
    const answer = { headers: { ...headers, "Content-Encoding": "gzip" }, body: await zipped(body) };
    if (file.startsWith(ASSETS)) kept.set(file, answer);
    return answer;
  };
}

const pathOf = (target: string): string => target.replace(/\?.*$/s, "");

const mediaTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

/**
 * Reads a file of the console. Each part of the path may contain only letters, digits, `_`, `-` and `.`, and must not begin with a dot, so
 * the path cannot leave the console's directory.
 */
async function fileOf(file: string): Promise<Buffer | undefined> {
  if (!/^(?:[\w-][\w.-]*\/)*[\w-][\w.-]*$/.test(file)) return undefined;
  return readFile(join(consoleFiles(), file)).catch(() => undefined);
}

const Several = z.object({ value: z.string(), multiValue: z.optional(z.array(z.object({ value: z.string() }))) });
const Values = z.record(z.string(), Several);
type Values = z.infer<typeof Values>;

/** The part of a CloudFront event's `request` that the local service passes to an edge function and gets back from it. */
const EdgeRequest = z.object({ method: z.string(), uri: z.string(), headers: Values, cookies: Values });
type EdgeRequest = z.infer<typeof EdgeRequest>;
const EdgeResponse = z.object({
  statusCode: z.int(),
  headers: z.record(z.string(), z.object({ value: z.string() })),
  body: z.object({ encoding: z.literal("text"), data: z.string() }),
});

const Handler = z.custom<(event: object) => unknown>((it) => typeof it === "function");

/** Loads an edge function. The returned function runs it for a request, and checks its result with the schema. */
function loadFunction<S extends z.ZodMiniType>(source: string, result: S): (request: EdgeRequest) => z.output<S> {
  const handler = Handler.parse(runInNewContext(`${source}\nhandler;`));
  return (request) =>
    z.parse(result, handler({ context: { requestId: randomUUID() }, request, viewer: { ip: "127.0.0.1" } }));
}

/** Returns `apiHeaders` of the edge. `source` is the source code of the edge function api-request.js. */
export function apiHeaders(source: string): Edge["apiHeaders"] {
  const run = loadFunction(source, EdgeRequest);
  return (raw) => {
    const { headers, cookies } = run(eventOf(raw.verb, raw.path, raw.headers));
    // The edge function gets header names in lower case. API Gateway passes header names to Lambda functions in the client's spelling, so
    // this spelling is restored here.
    const spelling = new Map([...raw.headers.keys()].map((name) => [name.toLowerCase(), name]));
    const changed = new Map<string, readonly string[]>(
      Object.entries(headers).map(([name, value]) => [spelling.get(name) ?? name, valuesOf(value)]),
    );
    const pairs = Object.entries(cookies).flatMap(([name, value]) => valuesOf(value).map((one) => `${name}=${one}`));
    if (pairs.length > 0) changed.set("Cookie", [pairs.join("; ")]);
    return changed;
  };
}

function eventOf(method: string, uri: string, headers: Headers): EdgeRequest {
  const others = [...headers].filter(([name]) => name.toLowerCase() !== "cookie");
  return {
    method,
    uri,
    headers: Object.fromEntries(others.map(([name, values]) => [name.toLowerCase(), several(values)])),
    cookies: Object.fromEntries([...cookiesOf(headers)].map(([name, values]) => [name, several(values)])),
  };
}

function cookiesOf(headers: Headers): Map<string, string[]> {
  const lines = [...headers].flatMap(([name, values]) => (name.toLowerCase() === "cookie" ? values : []));
  const cookies = new Map<string, string[]>();
  for (const pair of lines.flatMap((line) => line.split(";"))) {
    const [name = "", ...value] = pair.trim().split("=");
    cookies.set(name, [...(cookies.get(name) ?? []), value.join("=")]);
  }
  cookies.delete("");
  return cookies;
}

/** Returns values as CloudFront passes them to an edge function: `multiValue` exists only if there are several values. */
function several(values: readonly string[]): Values[string] {
  const [value = ""] = values;
  return values.length > 1 ? { value, multiValue: values.map((one) => ({ value: one })) } : { value };
}

const valuesOf = ({ value, multiValue }: Values[string]): string[] => multiValue?.map((one) => one.value) ?? [value];
