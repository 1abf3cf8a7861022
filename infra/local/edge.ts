/**
 * Does what CloudFront does in a deployment: it serves the console's files, and converts a session cookie to the header that the API's
 * authorizer reads. It runs the same edge functions as CloudFront.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { runInNewContext } from "node:vm";
import * as z from "zod/mini";
import {
  API_PATHS,
  type Basemap,
  CONFIG,
  cacheControl,
  consoleConfig,
  consoleFiles,
  contentSecurityPolicy,
  edgeFunction,
  pageHeaders,
} from "../build/edge.ts";
import { originForm, type RawRequest } from "./request.ts";
import type { Stack } from "./stack.ts";

export interface Edge {
  /** Returns the client's request with the headers that the edge function has changed. The API receives the returned request. */
  readonly apiRequest: (request: RawRequest) => RawRequest;
  /** Returns true if the request is for a page or a file of the console. */
  isForConsole(request: IncomingMessage): boolean;
  /** Sends the response to a request for the console. Never rejects. */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/**
 * Creates the local replacement of CloudFront. Returns undefined if the templates contain no console.
 * @param uploadOrigin the origin of the local bucket. Presigned URLs have this origin, so the console's content security policy must allow
 * it.
 */
export function createEdge(
  { stages }: Pick<Stack, "stages">,
  uploadOrigin: string,
  issuer: string,
  basemap: Basemap | undefined,
): Edge | undefined {
  const consoleUrl = stages[0]?.Variables.consoleUrl;
  if (consoleUrl === undefined) return undefined;
  const { port, host: ownHost } = new URL(consoleUrl);
  const pageRequest = loadFunction(edgeFunction("page-request", false), z.union([EdgeRequest, EdgeResponse]));
  const patterns = API_PATHS.map((path) => new RegExp(`^${path.replaceAll(".", "\\.").replaceAll("*", ".*")}$`));
  const headers = { ...pageHeaders, "Content-Security-Policy": contentSecurityPolicy(uploadOrigin, basemap) };
  return {
    apiRequest: apiRequests(edgeFunction("api-request", false)),
    isForConsole({ method, url = "/" }) {
      const path = pathOf(url);
      // The console and the API share one port. Requests with other methods than GET and HEAD are always for the API.
      return (method === "GET" || method === "HEAD") && !patterns.some((pattern) => pattern.test(path));
    },
    async serve({ method = "GET", url = "/", headers: { host } }, response) {
      const result = pageRequest(eventOf(method, pathOf(url), new Map()));
      if ("statusCode" in result) {
        for (const [name, { value }] of Object.entries(result.headers)) response.setHeader(name, value);
        response.writeHead(result.statusCode);
        response.end(method === "HEAD" ? undefined : result.body.data);
        return;
      }
      // A sign-in ends at the host of `consoleUrl`, for example 127.0.0.1. The browser does not send the cookies of `localhost` to that
      // host, so requests to `localhost` are redirected to `consoleUrl` before the sign-in.
      if (host === `localhost:${port}` && host !== ownHost) {
        response.writeHead(307, { Location: `${consoleUrl}${originForm(url)}` });
        response.end();
        return;
      }
      const file = result.uri.slice(1);
      const content = file === CONFIG ? Buffer.from(consoleConfig(issuer, basemap)) : await contentOf(file);
      if (content === undefined) {
        // In a deployment, CloudFront may not list the bucket, so S3 responds with 403 for a missing file. The local service does the same.
        response.writeHead(403, { ...headers, "Content-Type": "text/plain", "Cache-Control": "no-cache" });
        response.end("the console has no such file\n");
        return;
      }
      const type = mediaTypes[extname(file)] ?? "application/octet-stream";
      response.writeHead(200, { ...headers, "Content-Type": type, "Cache-Control": cacheControl(file) });
      response.end(method === "HEAD" ? undefined : content);
    },
  };
}

const pathOf = (url: string): string => originForm(url).split("?", 1)[0] ?? "/";

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
 * Returns the content of a file of the console. Each part of the path may contain only letters, digits, `_`, `-` and `.`, and must not
 * begin with a dot. So the path cannot leave the console's directory.
 */
async function contentOf(file: string): Promise<Buffer | undefined> {
  if (!/^(?:[\w-][\w.-]*\/)*[\w-][\w.-]*$/.test(file)) return undefined;
  return readFile(join(consoleFiles(), file)).catch(() => undefined);
}

const Several = z.object({ value: z.string(), multiValue: z.optional(z.array(z.object({ value: z.string() }))) });
const Values = z.record(z.string(), Several);
type Values = z.infer<typeof Values>;

/** The part of a CloudFront event's `request` that the local service passes to an edge function and gets back from it. */
const EdgeRequest = z.object({ method: z.string(), uri: z.string(), headers: Values, cookies: Values });
type EdgeRequest = z.infer<typeof EdgeRequest>;
/** The response with which an edge function can answer a request itself. */
const EdgeResponse = z.object({
  statusCode: z.int(),
  headers: z.record(z.string(), z.object({ value: z.string() })),
  body: z.object({ encoding: z.literal("text"), data: z.string() }),
});

interface EdgeEvent {
  readonly context: { readonly requestId: string };
  readonly request: EdgeRequest;
  readonly viewer: { readonly ip: string };
}

const Handler = z.custom<(event: EdgeEvent) => unknown>((it) => typeof it === "function");

/** Loads an edge function. The returned function checks the result of each call with the schema. */
function loadFunction<S extends z.ZodMiniType>(source: string, result: S): (request: EdgeRequest) => z.output<S> {
  const handler = Handler.parse(runInNewContext(`${source}\nhandler;`));
  return (request) =>
    z.parse(result, handler({ context: { requestId: randomUUID() }, request, viewer: { ip: "127.0.0.1" } }));
}

/**
 * Returns a function that runs an edge function on a request, as CloudFront does, and returns the request with the changed headers.
 * @param source the source code of the edge function
 */
export function apiRequests(source: string): Edge["apiRequest"] {
  const run = loadFunction(source, EdgeRequest);
  return (raw) => {
    const { headers, cookies } = run(eventOf(raw.verb, raw.path, raw.headers));
    // The edge function gets header names in lower case. API Gateway passes header names to Lambda functions in the client's spelling, so
    // this spelling is restored here.
    const spelling = new Map([...raw.headers.keys()].map((name) => [name.toLowerCase(), name]));
    const changed = new Map(
      Object.entries(headers).map(([name, value]) => [spelling.get(name) ?? name, valuesOf(value)]),
    );
    const pairs = Object.entries(cookies).flatMap(([name, value]) => valuesOf(value).map((one) => `${name}=${one}`));
    if (pairs.length > 0) changed.set("Cookie", [pairs.join("; ")]);
    return { ...raw, headers: changed };
  };
}

function eventOf(method: string, uri: string, headers: RawRequest["headers"]): EdgeRequest {
  const others = [...headers].filter(([name]) => name.toLowerCase() !== "cookie");
  return {
    method,
    uri,
    headers: Object.fromEntries(others.map(([name, values]) => [name.toLowerCase(), several(values)])),
    cookies: Object.fromEntries([...cookiesOf(headers)].map(([name, values]) => [name, several(values)])),
  };
}

function cookiesOf(headers: RawRequest["headers"]): Map<string, string[]> {
  const lines = [...headers].flatMap(([name, values]) => (name.toLowerCase() === "cookie" ? values : []));
  const cookies = new Map<string, string[]>();
  for (const pair of lines.flatMap((line) => line.split(";"))) {
    const [name = "", ...value] = pair.trim().split("=");
    cookies.set(name, [...(cookies.get(name) ?? []), value.join("=")]);
  }
  cookies.delete("");
  return cookies;
}

/** Returns a header or a cookie in the form of a CloudFront event. CloudFront sets `multiValue` only if there are several values. */
function several(values: readonly string[]): Values[string] {
  const [value = ""] = values;
  return values.length > 1 ? { value, multiValue: values.map((one) => ({ value: one })) } : { value };
}

const valuesOf = ({ value, multiValue }: Values[string]): string[] => multiValue?.map((one) => one.value) ?? [value];
