/** Checks presigned URLs as S3 does. */
import type { IncomingMessage } from "node:http";
import { SignatureV4 } from "@smithy/signature-v4";
import { REGION } from "../servers/address.ts";
import { s3At } from "../servers/clients.ts";

/** The parameters that a signer adds to a URL. */
const ADDED = /^X-Amz-(?:Algorithm|Content-Sha256|Credential|Date|Expires|SignedHeaders|Signature)$/;
const { sha256 } = s3At("http://127.0.0.1").config;

/**
 * Returns S3's error code for a presigned URL that has expired, or that was signed for another method, key or header. Returns undefined if
 * the URL is valid or not presigned.
 */
export async function linkFault(
  { method, headers }: IncomingMessage,
  { pathname: path, searchParams }: URL,
): Promise<string | undefined> {
  const parameter = (name: string): string => searchParams.get(`X-Amz-${name}`) ?? "";
  if (parameter("Signature") === "") return undefined;
  const signingDate = dateOf(parameter("Date"));
  const expiresIn = Number(parameter("Expires"));
  if (!(Date.now() < signingDate.getTime() + expiresIn * 1_000)) return "AccessDenied";
  const [accessKeyId = ""] = parameter("Credential").split("/");
  const credentials = { accessKeyId, secretAccessKey: "local" };
  const signer = new SignatureV4({ service: "s3", region: REGION, credentials, sha256, uriEscapePath: false });
  const names = new Set(parameter("SignedHeaders").split(";"));
  const signed = Object.fromEntries([...names].map((name) => [name, String(headers[name] ?? "")]));
  const request = {
    method: String(method),
    protocol: "http:",
    hostname: "127.0.0.1",
    path,
    query: Object.fromEntries([...searchParams].filter(([name]) => !ADDED.test(name))),
    headers: { ...signed, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD" },
  };
  const options = { signingDate, expiresIn, signableHeaders: names, unhoistableHeaders: names };
  const { query = {} } = await signer.presign(request, options);
  return query["X-Amz-Signature"] === parameter("Signature") ? undefined : "SignatureDoesNotMatch";
}

const dateOf = (text: string): Date =>
  new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
