/** The assumptions of the cost model and of the simulation: what reps do, and how Lambda and DynamoDB behave. */

/**
 * What a deployment with the preset `production` has by default in addition to the resources in measured.json. A test compares the numbers
 * of rules, alarms and metrics with the templates. `smokeTestDollars` is the sum of the monthly costs at the end of
 * docs/decisions/2026-11-22-watching.md.
 */
export const PRODUCTION_DEFAULTS = {
  webAclRules: 5,
  backupAlarms: 2,
  backupMetrics: 1,
  smokeTestDollars: 2.05,
} as const;

/** Write units of flushes for each write of a rep. `npm run bench -- --large` measures them over 131 072 creates (docs/benchmarks.md). */
export const FLUSH_WRITE_UNITS = 1.58;

export const HOURS_A_DAY = 6;
export const DAYS_A_MONTH = 21;
const HOURS_A_MONTH = 730;

/**
 * The share of map views that show the same area as the rep's last view. A rep who returns from a prospect to the map causes such a view. A
 * client that sends `If-None-Match` then gets 304, unless a prospect in the area has changed.
 */
export const SAME_VIEW = 0.5;

/**
 * Seconds for which Lambda keeps an idle environment. AWS does not document this time. Published measurements found 5 to 7 minutes
 * (https://mikhail.io/serverless/coldstarts/aws/intervals/).
 */
export const IDLE_SECONDS = 6 * 60;
/**
 * Assumed seconds after which Lambda ends an environment, even if it still gets requests. AWS says that Lambda does this after some hours,
 * but gives no number (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html).
 */
export const LIFE_SECONDS = 2 * 3_600;
/** Milliseconds in which Lambda creates an environment and starts Node.js with an empty function. */
export const ENVIRONMENT_MS = 180;
/**
 * Megabytes of memory from which on a function gets a whole processor. A function with less memory gets a proportional share of a processor
 * (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
 */
export const WHOLE_CPU_MB = 1_769;
/** Latencies in milliseconds of one request to DynamoDB in the same region. DynamoDB promises single-digit milliseconds. */
export const TABLE_MS = { read: { median: 4, p99: 14 }, write: { median: 9, p99: 28 } } as const;
/**
 * Bytes of the stored company index that a function can receive and decode in a millisecond. The model adds the time for the loaded bytes
 * to the measured processor time.
 */
export const LOADED_BYTES_A_MS = 60_000;
/** Milliseconds that API Gateway adds to the latency of each request. */
export const GATEWAY_MS = 6;

/**
 * Requests to SQS in a month with which Lambda polls a queue that is empty: five connections, each with long polls of 20 seconds
 * (https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html).
 */
export const IDLE_POLLS_A_MONTH = (5 * HOURS_A_MONTH * 3_600) / 20;

/**
 * The largest share of the segments of a company's search index that one map view loads, measured at 10 k, 100 k and 1 M prospects
 * (docs/benchmarks.md, budget 5).
 */
export const viewShare = (prospects: number): number =>
  prospects >= 1_000_000 ? 0.083 : prospects >= 100_000 ? 0.162 : 0.25;
