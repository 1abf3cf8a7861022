/** The clock as a parameter, so that tests control the time. */

export interface Clock {
  /** The current time in milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** The instant in the API's format, which is UTC with milliseconds. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
