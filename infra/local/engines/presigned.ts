/** Checks presigned URLs as S3 does. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";

const SECRET = "local";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * Returns S3's error code for a presigned URL that has expired, or that was signed for another method, key or header. Returns undefined if
 * the URL is valid or not presigned.
 */
export function linkFault(request: IncomingMessage, url: URL): string | undefined {
  const { searchParams } = url;
  const signature = searchParams.get("X-Amz-Signature");
  if (signature === null) return undefined;
  const date = searchParams.get("X-Amz-Date") ?? "";
  const endsAt = instantOf(date) + Number(searchParams.get("X-Amz-Expires")) * 1_000;
  if (!(Date.now() < endsAt)) return "AccessDenied";
  const [, day = "", region = "", service = ""] = (searchParams.get("X-Amz-Credential") ?? "").split("/");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", date, scope, hash(canonical(request, url))].join("\n");
  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(mac, `AWS4${SECRET}`);
  return mac(key, toSign).toString("hex") === signature ? undefined : "SignatureDoesNotMatch";
}

function canonical({ method, headers }: IncomingMessage, { pathname, searchParams }: URL): string {
  const query = [...searchParams]
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .toSorted();
  const names = (searchParams.get("X-Amz-SignedHeaders") ?? "").split(";");
  const lines = names.map((name) => `${name}:${String(headers[name] ?? "").trim()}`);
  return [method, pathname, query.join("&"), ...lines, "", names.join(";"), "UNSIGNED-PAYLOAD"].join("\n");
}

function instantOf(date: string): number {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  const [year = Number.NaN, month = 1, ...rest] = parts.map(Number);
  const [day = 1, hour, minute, second] = rest;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
