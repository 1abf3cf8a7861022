/** Time as an effect, so that tests can hold it still. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** An instant as the interface writes it: UTC with milliseconds. */
export const iso = (epochMs: number): string => new Date(epochMs).toISOString();
