/** A clock is a parameter, so that tests can control the time. */

export interface Clock {
  /** Returns milliseconds since 1970 (UTC). */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

export const DAY_MS = 86_400_000;

/** Formats a time as the API does. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
