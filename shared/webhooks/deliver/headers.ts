/** The headers of a delivery that need no secret. The console uses this file too, so it must not import modules of Node.js. */

/** Percent-encodes `%` and all characters outside visible ASCII, so that a tenant's text cannot add a header to the request. */
export const headerValue = (text: string): string =>
  text.toWellFormed().replace(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);

interface Sent {
  readonly id: string;
  readonly event: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
}

export const plainHeaders = ({ id, event, attempt }: Sent) => ({
  "Content-Type": "application/json; charset=utf-8",
  "User-Agent": "canvassing-webhooks/1",
  "X-Service-Event": headerValue(event),
  "X-Service-Delivery": id,
  "X-Service-Attempt": String(attempt),
});

/** The headers of the Standard Webhooks specification that its signature covers. */
export const standardHeaders = (deliveryId: string, startedMs: number) => ({
  "webhook-id": deliveryId,
  "webhook-timestamp": String(Math.floor(startedMs / 1_000)),
});
