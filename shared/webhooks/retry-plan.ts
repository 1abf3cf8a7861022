/** The retry plan of failed deliveries. */
import { createHash } from "node:crypto";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The times between ten attempts: 75 h 35 min in all. */
export const retryGapsMs: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];
export const MAX_ATTEMPTS = retryGapsMs.length + 1;

/** The duration of the whole retry plan. A delivery is given up if no request for it could be sent for this time. */
export const UNSENT_MS = retryGapsMs.reduce((sum, gap) => sum + gap, 0);

/** Each gap is longer or shorter by up to this share, so that deliveries that failed together are not retried at the same time. */
const JITTER = 0.2;
const RETRY_AFTER_MAX_MS = 24 * HOUR;

/** Returns the delay of a registration in milliseconds. Tests shorten it with a `scale` above 1. */
export const delayMs = (delayMinutes: number, scale: number): number => Math.ceil((delayMinutes * MINUTE) / scale);

/** Milliseconds to the next attempt. Undefined after the last one. Retry-After replaces the gap of the plan, but is 1 s to 24 h. */
export function nextGapMs(
  deliveryId: string,
  failedAttempt: number,
  retryAfter: string | undefined,
  nowMs: number,
  scale: number,
): number | undefined {
  const gap = retryGapsMs[failedAttempt - 1];
  if (gap === undefined) return undefined;
  const requested = retryAfterMs(retryAfter, nowMs);
  return (requested ?? gap * jitter(deliveryId, failedAttempt)) / scale;
}

/** Returns a factor from 0.8 to 1.2 that depends only on the delivery and the attempt. */
function jitter(deliveryId: string, attempt: number): number {
  const unit = createHash("sha256").update(`${deliveryId}:${attempt}`).digest().readUInt32BE() / 0xffffffff;
  return 1 - JITTER + 2 * JITTER * unit;
}

function retryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const wait = /^\d+$/.test(text) ? Number(text) * SECOND : httpDate(text) - nowMs;
  if (Number.isNaN(wait)) return undefined;
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(SECOND, wait));
}

/** Converts an HTTP date to milliseconds since 1970. Only the format IMF-fixdate of RFC 9110 is accepted. */
const httpDate = (text: string): number =>
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN;
