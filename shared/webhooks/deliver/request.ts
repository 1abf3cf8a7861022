/** The request that takes a delivery to its receiver. No text of a tenant's can make a header that is no header. */
import type { Post } from "#shared/outbound/post.ts";
import { type SigningSecrets, signatureHeaders } from "#shared/webhooks/deliver/signature.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";

/**
 * Visible ASCII as it is; everything else, and `%` itself, percent-encoded as UTF-8 (RFC 3986), so that `decodeURIComponent` and
 * its like give the text back.
 */
export const headerValue = (text: string): string =>
  text.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);

type Sent = Pick<StoredDelivery, "id" | "event" | "attempt">;

export function requestOf(
  url: string,
  secrets: SigningSecrets,
  { id, event, attempt }: Sent,
  body: string,
  nowMs: number,
): Post {
  return {
    url,
    body,
    headers: {
      "Content-Type": "application/json; charset=utf-8",
      "User-Agent": "canvassing-webhooks/1",
      "X-Service-Event": headerValue(event),
      "X-Service-Delivery": id,
      "X-Service-Attempt": String(attempt),
      ...signatureHeaders(secrets, id, body, nowMs),
    },
  };
}
