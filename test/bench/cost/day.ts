/** The input and the result of the simulation of a working day. */
import type { Measured, Operation } from "./measured.ts";

export interface Scenario {
  readonly reps: number;
  readonly companies: number;
  /** Number of prospects of each company. */
  readonly prospects: number;
}

/** The use of one function on the simulated day. */
export interface FunctionDay {
  requests: number;
  starts: number;
  gbSeconds: number;
  /** GB-seconds in environments with provisioned concurrency. */
  provisionedGbSeconds: number;
}

export interface Day {
  readonly functions: ReadonlyMap<string, FunctionDay>;
  /** Latencies of the requests of each operation in milliseconds, sorted. */
  readonly latencies: ReadonlyMap<Operation, Float64Array>;
  /** Read units for loading indexes into memory. */
  readonly loadUnits: number;
  /** Number of requests that loaded an index. */
  readonly loads: number;
  /** Number of requests that were answered with 304. */
  readonly notModified: number;
  /**
   * The mean share of a page's prospects that a list or search had to read from the table, because the function did not have them in
   * memory.
   */
  readonly unread: Readonly<Record<Listing, number>>;
}

/** The requests that read a page of prospects. */
export type Listing = keyof Measured["inMemory"];
