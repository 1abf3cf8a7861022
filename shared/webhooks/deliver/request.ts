/** Makes the signed HTTP request with which a delivery is sent to its receiver. */
import { createHmac, type Hmac } from "node:crypto";
import type { Post } from "#shared/outbound/post.ts";
import { plainHeaders, standardHeaders } from "#shared/webhooks/deliver/headers.ts";
import type { StoredDelivery } from "#shared/webhooks/delivery.ts";
import type { OpenedSecrets } from "#shared/webhooks/subscriptions/secret.ts";

export function requestOf(
  url: string,
  secrets: OpenedSecrets,
  { id, event, attempt }: Pick<StoredDelivery, "id" | "event" | "attempt">,
  body: string,
  nowMs: number,
): Post {
  return {
    url,
    body,
    headers: {
      ...plainHeaders({ id, event, attempt }),
      ...signatureHeaders(secrets, id, body, nowMs),
    },
  };
}

/**
 * Signs the exact bytes of the body. Returns the service's own signature headers, and the three headers of Standard Webhooks. The service's
 * own signature uses the bytes of the secret's text. Standard Webhooks decodes a `whsec_…` secret from base64, and uses the text of any
 * other secret. Until `previousSecret.until`, a receiver may verify with either secret.
 */
export function signatureHeaders(
  { secretKey, previousSecret }: OpenedSecrets,
  deliveryId: string,
  body: string,
  nowMs: number,
) {
  const headers = standardHeaders(deliveryId, nowMs);
  const timestamp = headers["webhook-timestamp"];
  const previous =
    previousSecret !== undefined && Date.parse(previousSecret.until) > nowMs ? [previousSecret.secretKey] : [];
  const standard = (secret: string): string =>
    `v1,${standardHmac(secret).update(`${deliveryId}.${timestamp}.${body}`).digest("base64")}`;
  const [ownPrevious] = previous.map((secret) => own(secret, body));
  return {
    "X-Service-Signature": own(secretKey, body),
    ...(ownPrevious !== undefined && { "X-Service-Signature-Previous": ownPrevious }),
    ...headers,
    "webhook-signature": [secretKey, ...previous].map(standard).join(" "),
  };
}

const own = (secret: string, body: string): string => createHmac("sha256", secret).update(body).digest("hex");

/** The key is passed to Node.js as text, because `createHmac` takes five times as long with a key in bytes. */
const standardHmac = (secretKey: string): Hmac =>
  secretKey.startsWith("whsec_")
    ? createHmac("sha256", secretKey.slice("whsec_".length), { encoding: "base64" })
    : createHmac("sha256", secretKey);
