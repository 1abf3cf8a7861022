/** Signs the exact bytes of a delivery: the service's own header and the Standard Webhooks trio. */
import { createHmac, type Hmac } from "node:crypto";

/** The secret, and the one before it with the time until which it signs too. */
export interface SigningSecrets {
  readonly secretKey: string;
  readonly previousSecret?: { readonly secretKey: string; readonly until: string } | undefined;
}

export interface SignatureHeaders {
  readonly "X-Service-Signature": string;
  /** For a day after a rotation. */
  readonly "X-Service-Signature-Previous"?: string;
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/**
 * The secret keys the first as UTF-8; `whsec_…` is base64 for the second, as its verifiers read it. While the previous secret
 * still signs, a receiver that has either of the two accepts the delivery.
 */
export function signatureHeaders(
  { secretKey, previousSecret }: SigningSecrets,
  deliveryId: string,
  body: string,
  nowMs: number,
): SignatureHeaders {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const previous =
    previousSecret !== undefined && Date.parse(previousSecret.until) > nowMs ? [previousSecret.secretKey] : [];
  const standard = (secret: string): string =>
    `v1,${standardHmac(secret).update(`${deliveryId}.${timestamp}.${body}`).digest("base64")}`;
  const [ownPrevious] = previous.map((secret) => own(secret, body));
  return {
    "X-Service-Signature": own(secretKey, body),
    ...(ownPrevious !== undefined && { "X-Service-Signature-Previous": ownPrevious }),
    "webhook-id": deliveryId,
    "webhook-timestamp": timestamp,
    "webhook-signature": [secretKey, ...previous].map(standard).join(" "),
  };
}

const own = (secret: string, body: string): string => createHmac("sha256", secret).update(body).digest("hex");

/** Node takes a key that is text in a fifth of the time that it takes for one of bytes. */
const standardHmac = (secretKey: string): Hmac =>
  secretKey.startsWith("whsec_")
    ? createHmac("sha256", secretKey.slice("whsec_".length), { encoding: "base64" })
    : createHmac("sha256", secretKey);
