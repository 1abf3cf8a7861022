/** Tests that the local bucket applies CORS rules as S3 does. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { corsHeaders, preflight } from "../../../infra/local/engines/cors.ts";
import { Bucket } from "../../../infra/local/template/resources.ts";

const bucketWith = (...CorsRules: object[]) => ({
  ...z.parse(Bucket, CorsRules.length === 0 ? {} : { CorsConfiguration: { CorsRules } }),
  id: "Files",
  name: "files",
});
const origin = "https://app.example.com";
const asking = (method: string, names?: string) => ({
  origin,
  "access-control-request-method": method,
  ...(names !== undefined && { "access-control-request-headers": names }),
});

test("a bucket without rules allows no origin", () => {
  for (const bucket of [undefined, bucketWith()]) {
    expect(corsHeaders(bucket, "GET", { origin })).toEqual({});
    expect(preflight(bucket, asking("GET"))).toBe("AccessForbidden");
  }
});

test("a request without an origin gets no headers, and an incomplete preflight is a bad request", () => {
  const bucket = bucketWith({ AllowedOrigins: ["*"], AllowedMethods: ["GET"] });
  expect(corsHeaders(bucket, "GET", {})).toEqual({});
  expect(preflight(bucket, { origin })).toBe("BadRequest");
  expect(preflight(bucket, { "access-control-request-method": "GET" })).toBe("BadRequest");
});

test("a star allows every origin and header, without credentials", () => {
  const bucket = bucketWith({ AllowedOrigins: ["*"], AllowedMethods: ["GET"], AllowedHeaders: ["*"], MaxAge: 5 });
  const headers = preflight(bucket, asking("GET", "X-One, x-two"));
  expect(headers).toMatchObject({
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "x-one, x-two",
    "Access-Control-Max-Age": "5",
  });
  expect(headers).not.toHaveProperty("Access-Control-Allow-Credentials");
  expect(preflight(bucket, asking("PUT"))).toBe("AccessForbidden");
});

test("the first rule that allows the origin, the method and each header applies", () => {
  const bucket = bucketWith(
    { AllowedOrigins: [origin], AllowedMethods: ["GET"], ExposedHeaders: ["ETag"] },
    { AllowedOrigins: [origin], AllowedMethods: ["GET", "PUT"], AllowedHeaders: ["Content-Type"] },
  );
  expect(corsHeaders(bucket, "GET", { origin })).toMatchObject({ "Access-Control-Expose-Headers": "ETag" });
  expect(corsHeaders(bucket, "PUT", { origin })).not.toHaveProperty("Access-Control-Expose-Headers");
  expect(preflight(bucket, asking("GET", "content-type"))).toMatchObject({
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Methods": "GET, PUT",
  });
  expect(preflight(bucket, asking("PUT", "x-other"))).toBe("AccessForbidden");
});

test("an origin with a wildcard such as `https://*.example.com` is refused, because the local bucket cannot apply it", () => {
  expect(() => bucketWith({ AllowedOrigins: ["https://*.example.com"], AllowedMethods: ["GET"] })).toThrow("patterns");
});
