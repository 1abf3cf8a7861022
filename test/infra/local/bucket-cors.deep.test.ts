/** Tests that the local bucket applies CORS rules as S3 does. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { corsHeaders, preflight } from "../../../infra/local/engines/cors.ts";
import { schemas } from "../../../infra/local/template/resources.ts";

const bucketWith = (...CorsRules: object[]) => ({
  ...z.parse(schemas["AWS::S3::Bucket"], CorsRules.length === 0 ? {} : { CorsConfiguration: { CorsRules } }),
  id: "Files",
  name: "files",
});
const origin = "https://app.example.com";
const asking = (method: string, names?: string) => ({
  origin,
  "access-control-request-method": method,
  ...(names !== undefined && { "access-control-request-headers": names }),
});
const open = bucketWith({ AllowedOrigins: ["*"], AllowedMethods: ["GET"], AllowedHeaders: ["X-One"], MaxAge: 5 });

test.each([
  ["for no bucket", undefined, asking("GET"), "AccessForbidden"],
  ["for a bucket without rules", bucketWith(), asking("GET"), "AccessForbidden"],
  ["for another method", open, asking("PUT"), "AccessForbidden"],
  ["for another header", open, asking("GET", "x-one, x-two"), "AccessForbidden"],
  ["without a method", open, { origin }, "BadRequest"],
  ["without an origin", open, { "access-control-request-method": "GET" }, "BadRequest"],
])("a preflight %s is refused", (_, bucket, headers, code) => {
  expect(preflight(bucket, headers)).toBe(code);
});

test("a request gets headers only if it has an origin and a rule allows it", () => {
  for (const bucket of [undefined, bucketWith()]) expect(corsHeaders(bucket, "GET", { origin })).toEqual({});
  expect(corsHeaders(open, "GET", {})).toEqual({});
});

test("a star allows every origin, without credentials", () => {
  const headers = preflight(open, asking("GET", "X-One"));
  expect(headers).toMatchObject({
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "x-one",
    "Access-Control-Max-Age": "5",
  });
  expect(headers).not.toHaveProperty("Access-Control-Allow-Credentials");
});

test("the first rule that allows the origin, the method and each header applies", () => {
  const bucket = bucketWith(
    { AllowedOrigins: [origin], AllowedMethods: ["GET"], ExposedHeaders: ["ETag"] },
    { AllowedOrigins: [origin], AllowedMethods: ["GET", "PUT"], AllowedHeaders: ["Content-Type"] },
  );
  const both = { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Methods": "GET, PUT" };
  expect(corsHeaders(bucket, "GET", { origin })).toMatchObject({ "Access-Control-Expose-Headers": "ETag" });
  expect(corsHeaders(bucket, "PUT", { origin })).not.toHaveProperty("Access-Control-Expose-Headers");
  expect(corsHeaders(bucket, "PUT", { origin })).toMatchObject(both);
  expect(preflight(bucket, asking("GET", "content-type"))).toMatchObject(both);
});

test.each(["AllowedOrigins", "AllowedHeaders"])(
  "a wildcard in %s is refused, because the local bucket cannot apply it",
  (name) => {
    const rule = { AllowedOrigins: ["*"], AllowedMethods: ["GET"], [name]: ["https://*.example.com"] };
    expect(() => bucketWith(rule)).toThrow("patterns");
  },
);
