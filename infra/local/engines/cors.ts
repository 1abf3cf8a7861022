/** Applies the CORS rules of a bucket as S3 does. */
import type { IncomingHttpHeaders } from "node:http";
import type { Stack } from "../template/stack.ts";

type Bucket = Stack["buckets"][number];
type Rule = NonNullable<Bucket["CorsConfiguration"]>["CorsRules"][number];
type Headers = Readonly<Record<string, string>>;

/** The header `Vary`. Without it, a cache could use the response for one origin for a request from another origin. */
const VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

export function corsHeaders(bucket: Bucket | undefined, method: string, { origin }: IncomingHttpHeaders): Headers {
  const rule = origin === undefined ? undefined : ruleFor(bucket, origin, method, []);
  return rule === undefined || origin === undefined ? {} : headersOf(rule, origin);
}

/** Returns the headers of the answer to a preflight, or S3's error code if no rule allows the request. */
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
    ...headersOf(rule, origin),
    ...(asked.length > 0 && { "Access-Control-Allow-Headers": asked.join(", ") }),
    ...(rule.MaxAge !== undefined && { "Access-Control-Max-Age": String(rule.MaxAge) }),
  };
}

const namesIn = (list: string): string[] =>
  list
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");

const ruleFor = (bucket: Bucket | undefined, origin: string, method: string, asked: readonly string[]) =>
  bucket?.CorsConfiguration?.CorsRules.find(
    ({ AllowedOrigins, AllowedMethods, AllowedHeaders }) =>
      AllowedOrigins.some((allowed) => allowed === "*" || allowed === origin) &&
      AllowedMethods.some((allowed) => allowed === method) &&
      asked.every((name) => AllowedHeaders.some((allowed) => allowed.toLowerCase() === name)),
  );

const headersOf = ({ AllowedOrigins, AllowedMethods, ExposedHeaders }: Rule, origin: string): Headers => ({
  ...(AllowedOrigins.includes("*")
    ? { "Access-Control-Allow-Origin": "*" }
    : { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true" }),
  "Access-Control-Allow-Methods": AllowedMethods.join(", "),
  ...(ExposedHeaders.length > 0 && { "Access-Control-Expose-Headers": ExposedHeaders.join(", ") }),
  Vary: VARY,
});
