/** Computes the signatures of a delivery in the browser, as the service does when it sends the delivery. */
import { standardHeaders } from "../../../shared/webhooks/deliver/headers.ts";

const STANDARD_PREFIX = "whsec_";

export interface Signatures {
  readonly "X-Service-Signature": string;
  readonly "webhook-signature": string;
}

/** Returns the signatures. Rejects if a secret begins with `whsec_` and the rest is not base64. */
export async function signaturesOf(
  secret: string,
  deliveryId: string,
  body: string,
  startedMs: number,
): Promise<Signatures> {
  const { "webhook-id": id, "webhook-timestamp": timestamp } = standardHeaders(deliveryId, startedMs);
  const text = new TextEncoder().encode(secret);
  const standardKey = secret.startsWith(STANDARD_PREFIX)
    ? Uint8Array.from(atob(secret.slice(STANDARD_PREFIX.length)), (character) => character.charCodeAt(0))
    : text;
  const own = await hmac(text, body);
  const standard = await hmac(standardKey, `${id}.${timestamp}.${body}`);
  return {
    "X-Service-Signature": [...own].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
    "webhook-signature": `v1,${btoa(String.fromCharCode(...standard))}`,
  };
}

async function hmac(secret: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}
