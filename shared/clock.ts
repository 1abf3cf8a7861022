/** The clock is a parameter of the code that needs the time, so that tests control the time. */

export interface Clock {
  /** Returns milliseconds since 1970 (UTC). */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats a time as the API does: ISO 8601 in UTC with milliseconds. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
