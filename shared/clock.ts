/** The clock as a parameter, so that tests control the time. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** An instant in the API's format: UTC with milliseconds. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
