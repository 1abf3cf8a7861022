/** Reads the path, query, headers and body of an HTTP request as API Gateway does. */
import type { IncomingMessage } from "node:http";
import { at } from "#shared/at.ts";

export interface RawRequest {
  readonly verb: string;
  readonly path: string;
  readonly segments: readonly string[];
  readonly query: ReadonlyMap<string, readonly string[]>;
  /** The values of each header by its name. A name keeps the upper and lower case of its first occurrence in the request. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
}

const BODY_LIMIT_BYTES = 10 * 1024 * 1024;

/** Reads a request. Returns undefined if a percent escape is invalid, such as `%zz`, or is not UTF-8, such as `%ff`. */
export function readRequest(request: IncomingMessage): RawRequest | undefined {
  const target = originForm(request.url ?? "/");
  const [path = "/", search = ""] = splitOnce(target, "?");
  try {
    return {
      verb: request.method ?? "GET",
      path,
      segments: path === "/" ? [] : path.split("/").slice(1).map(decodeURIComponent),
      query: readQuery(search),
      headers: readHeaders(request.rawHeaders),
    };
  } catch {
    return undefined;
  }
}

/** Returns the path and query of a request's target. The target may be a URL: HTTP requires servers to accept `GET http://host/path`. */
export function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const path = /^[a-z][a-z0-9+.-]*:\/\/[^/?]*(.*)$/i.exec(target)?.[1] ?? `/${target}`;
  return path.startsWith("/") ? path : `/${path}`;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function readQuery(search: string): Map<string, string[]> {
  const query = new Map<string, string[]>();
  for (const part of search.split("&")) {
    if (part === "") continue;
    const [name, value] = splitOnce(part, "=");
    append(query, decoded(name), decoded(value));
  }
  return query;
}

const decoded = (text: string): string => decodeURIComponent(text.replaceAll("+", " "));

/** Returns the name, as it was sent, of the first query parameter with a percent escape that `readRequest` cannot decode. */
export function unreadableParameter(target = ""): string | undefined {
  for (const part of splitOnce(target, "?")[1].split("&")) {
    try {
      readQuery(part);
    } catch {
      return splitOnce(part, "=")[0];
    }
  }
  return undefined;
}

/**
 * Headers that API Gateway does not pass to a function. Source: AWS's page "Amazon API Gateway important notes", column Lambda.
 * `keep-alive` and `proxy-connection` are not on that page. They concern only the connection to the client. `transfer-encoding` would be
 * wrong for the body that the function gets, because Node.js has already joined its chunks.
 */
const droppedHeaders = new Set([
  ...["connection", "content-md5", "expect", "keep-alive", "max-forwards", "proxy-authenticate", "proxy-connection"],
  ...["server", "te", "trailer", "transfer-encoding", "upgrade", "www-authenticate"],
]);

function readHeaders(raw: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  const spelling = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = at(raw, i);
    const key = name.toLowerCase();
    if (droppedHeaders.has(key)) continue;
    if (!spelling.has(key)) spelling.set(key, name);
    append(headers, spelling.get(key) ?? name, at(raw, i + 1));
  }
  return headers;
}

function append(map: Map<string, string[]>, name: string, value: string): void {
  const values = map.get(name);
  if (values === undefined) map.set(name, [value]);
  else values.push(value);
}

/** @param name the name of the header in lower case */
export function headerValues(headers: RawRequest["headers"], name: string): readonly string[] {
  for (const [key, values] of headers) if (key.toLowerCase() === name) return values;
  return [];
}

export const header = ({ headers }: RawRequest, name: string): string | undefined => headerValues(headers, name).at(-1);

/** Reads the body of a request. Returns undefined if it is larger than `BODY_LIMIT_BYTES`. Throws if the client disconnects. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > BODY_LIMIT_BYTES) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    size += part.length;
    if (size > BODY_LIMIT_BYTES) return undefined;
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

/** Returns true if an entry matches the type. `image/*` matches all image types. A star before and after the slash matches all types. */
export function isBinary(mediaTypes: readonly string[], contentType: string | undefined): boolean {
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  return mediaTypes.some((entry) => {
    const pattern = entry.replace("~1", "/").toLowerCase();
    return pattern === "*/*" || pattern === type || (pattern.endsWith("/*") && type.startsWith(pattern.slice(0, -1)));
  });
}
