/** What a bucket answers to pages of other origins: as S3 does, by the rules of the template. */
import type { IncomingHttpHeaders } from "node:http";
import type { Stack } from "./stack.ts";

type Bucket = Stack["buckets"][number];
type Rule = NonNullable<Bucket["CorsConfiguration"]>["CorsRules"][number];
type Headers = Readonly<Record<string, string>>;

/** Caches must not give one origin's answer to another. */
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

/** Added to the answer of any request: nothing without an origin, or for one that no rule lets in. */
export function originHeaders(bucket: Bucket | undefined, method: string, { origin }: IncomingHttpHeaders): Headers {
  const rule = origin === undefined ? undefined : ruleFor(bucket, origin, method, []);
  return rule === undefined || origin === undefined ? {} : lettingIn(rule, origin);
}

/** What a browser asks before it sends: its answer, or why S3 gives none. */
export function preflight(
  bucket: Bucket | undefined,
  { origin, ...headers }: IncomingHttpHeaders,
): Headers | "BadRequest" | "AccessForbidden" {
  const method = headers["access-control-request-method"];
  if (origin === undefined || method === undefined) return "BadRequest";
  const asked = namesIn(headers["access-control-request-headers"] ?? "");
  const rule = ruleFor(bucket, origin, method, asked);
  if (rule === undefined) return "AccessForbidden";
  return {
    ...lettingIn(rule, origin),
    ...(asked.length > 0 && { "Access-Control-Allow-Headers": asked.join(", ") }),
    ...(rule.MaxAge !== undefined && { "Access-Control-Max-Age": String(rule.MaxAge) }),
  };
}

const namesIn = (list: string): string[] =>
  list
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");

/** The first that fits. */
const ruleFor = (bucket: Bucket | undefined, origin: string, method: string, asked: readonly string[]) =>
  bucket?.CorsConfiguration?.CorsRules.find(
    ({ AllowedOrigins, AllowedMethods, AllowedHeaders }) =>
      AllowedOrigins.some((allowed) => allowed === "*" || allowed === origin) &&
      AllowedMethods.some((allowed) => allowed === method) &&
      asked.every((name) => AllowedHeaders.some((allowed) => allowed === "*" || allowed.toLowerCase() === name)),
  );

const lettingIn = ({ AllowedOrigins, AllowedMethods, ExposedHeaders }: Rule, origin: string): Headers => ({
  ...(AllowedOrigins.includes("*")
    ? { "Access-Control-Allow-Origin": "*" }
    : { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true" }),
  "Access-Control-Allow-Methods": AllowedMethods.join(", "),
  ...(ExposedHeaders.length > 0 && { "Access-Control-Expose-Headers": ExposedHeaders.join(", ") }),
  Vary: VARY,
});
