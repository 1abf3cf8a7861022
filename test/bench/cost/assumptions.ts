/** The assumptions of the cost model and of the simulation: what reps do, and how Lambda and DynamoDB behave. */
import type { Operation } from "./measured.ts";

/** Requests of one rep in one hour of work. */
export const PER_HOUR: Readonly<Record<Exclude<Operation, "authorize">, number>> = {
  pins: 60,
  patch: 30,
  detail: 20,
  list: 5,
  search: 1,
  create: 3,
};
export const HOURS_A_DAY = 6;
export const DAYS_A_MONTH = 21;
export const HOURS_A_MONTH = 730;

/**
 * The share of map views that show the same area as the rep's last view, because the rep returns to the map from a prospect. A client that
 * sends `If-None-Match` then gets 304, unless a prospect of the area has changed.
 */
export const SAME_VIEW = 0.5;

/**
 * How long Lambda keeps an idle environment. AWS does not document it. Measurements of others found 5 to 7 minutes
 * (https://mikhail.io/serverless/coldstarts/aws/intervals/).
 */
export const IDLE_SECONDS = 6 * 60;
/**
 * Lambda ends each environment after some hours, also a busy one
 * (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html). AWS names no number.
 */
export const LIFE_SECONDS = 2 * 3_600;
/** The time in which Lambda makes an environment and starts Node.js with an empty function. */
export const ENVIRONMENT_MS = 180;
/** Lambda gives one processor from this memory on, and a share of one below (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html). */
export const WHOLE_CPU_MB = 1_769;
/** Latencies of one call to DynamoDB in the same region. DynamoDB promises single-digit milliseconds. */
export const TABLE_MS = { read: { median: 4, p99: 14 }, write: { median: 9, p99: 28 } } as const;
/** Bytes of index pieces that a function receives and decodes in a millisecond beside the measured processor time. */
export const LOADED_BYTES_A_MS = 60_000;
/** The time that API Gateway adds to each request. */
export const GATEWAY_MS = 6;
/** The stream starts a function at most this often in a second for each of its shards, as Lambda polls a shard four times a second. */
export const POLLS_A_SECOND = 4;

/**
 * The largest share of a company's index segments that one map view loads, measured at 10 k, 100 k and 1 M prospects (docs/benchmarks.md,
 * budget 5).
 */
export const viewShare = (prospects: number): number =>
  prospects >= 1_000_000 ? 0.083 : prospects >= 100_000 ? 0.162 : 0.25;
