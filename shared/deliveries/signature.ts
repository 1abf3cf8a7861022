/** Signs the exact bytes of a delivery: the service's own header and the Standard Webhooks trio. */
import { createHmac } from "node:crypto";

export interface SignatureHeaders {
  readonly "X-Service-Signature": string;
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** `secretKey` keys the first as UTF-8; `whsec_…` is base64 for the second, as its verifiers read it. */
export function signatureHeaders(secretKey: string, deliveryId: string, body: string, nowMs: number): SignatureHeaders {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const standard = createHmac("sha256", standardKey(secretKey)).update(`${deliveryId}.${timestamp}.${body}`);
  return {
    "X-Service-Signature": createHmac("sha256", secretKey).update(body).digest("hex"),
    "webhook-id": deliveryId,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${standard.digest("base64")}`,
  };
}

const standardKey = (secretKey: string): Buffer =>
  secretKey.startsWith("whsec_")
    ? Buffer.from(secretKey.slice("whsec_".length), "base64")
    : Buffer.from(secretKey, "utf8");
