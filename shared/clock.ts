/** The interface of a clock. Code that needs the time gets a clock as a parameter, so that tests can control the time. */

export interface Clock {
  /** Returns milliseconds since 1970 (UTC). */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats a time as the API does: ISO 8601 in UTC with milliseconds. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
