/** Divides the concurrency of an AWS account between the functions. */
import { CHANGES_AT_ONCE } from "#shared/jobs/job.ts";
import * as limits from "#shared/limits.ts";
import type { Throttle } from "../routes/route.ts";

export const presets = ["small", "production"] as const;
export type Preset = (typeof presets)[number];

/** Lambda refuses a reservation that leaves fewer than 100 executions unreserved. */
const UNRESERVED = 100;

/** The default memory of a function in MB. It also determines the share of a processor: with 1 769 MB, a function has a whole processor. */
export const MEMORY_MB = 1024;

/** Lambda collects changes for this time, so that many writes cause one flush. Reads miss nothing: they also use unflushed entries. */
export const FLUSH_WINDOW_SECONDS = 10;

export interface Capacity {
  readonly accountConcurrency: number;
  /** The throttle of all requests together. API Gateway refuses further requests without invoking a function. */
  readonly requests: Throttle;
  /** The throttle of each company. Without it, one company could use the whole throttle of all requests. */
  readonly company: Throttle;
  /** Concurrent executions of the deliverer, each with up to ten deliveries at a time. */
  readonly deliverySenders: number;
  /** The number of concurrent imports, of concurrent exports and of concurrent bulk jobs. */
  readonly jobs: number;
  /** Records that an import or bulk job changes at the same time. */
  readonly changesAtOnce: number;
  /** Reserved executions by function file. No other function can use them, and the function cannot use more. */
  readonly reserved: Readonly<Partial<Record<string, number>>>;
  readonly memoryMb: Readonly<Partial<Record<string, number>>>;
  /** The number of environments that Lambda keeps ready (provisioned concurrency), by function file. */
  readonly provisioned: Readonly<Partial<Record<string, number>>>;
  /** True if `streamThrottle` limits each company. */
  readonly limitsStreams: boolean;
}

type Plan = Pick<Capacity, "accountConcurrency" | "requests" | "deliverySenders" | "jobs" | "reserved" | "memoryMb">;

/** `jobs` is at least 2, because Lambda accepts no smaller maximum concurrency for the event source of a queue. */
const plans: Record<Preset, Plan> = {
  /**
   * A new account has 10 concurrent executions and may reserve none. Senders and jobs use at most eight of them. The functions that read
   * the stream may need `STREAM_EXECUTIONS` more, so a job changes few records at a time.
   */
  small: {
    accountConcurrency: 10,
    // The ten executions, of 100 ms each, handle 100 requests per second. Lambda would refuse more, and API Gateway would answer 500.
    requests: { perSecond: 100, burst: 200 },
    deliverySenders: 2,
    jobs: 2,
    reserved: {},
    // In a new account, a function may have at most 3 008 MB.
    memoryMb: {
      "prospects/list": 2_048,
      "prospects/search": 2_048,
      "prospects/clusters": 2_048,
      "prospects/pins": 2_048,
    },
  },
  /**
   * `publish` and `flush` need one execution for each shard of the stream, and 20 shards accept about 20 000 writes per second. The
   * authorizer takes 20 ms once a minute for each caller, so 50 executions are enough for 2 500 callers in the same second.
   */
  production: {
    accountConcurrency: 1_000,
    requests: { perSecond: 1_000, burst: 2_000 },
    deliverySenders: 50,
    jobs: 10,
    reserved: {
      authorize: 50,
      "events/publish": 20,
      "index/flush": 20,
      "prospects/export": 50,
      "prospects/import": 50,
    },
    memoryMb: {
      "prospects/list": 5_120,
      "prospects/search": 2_048,
      "prospects/clusters": 2_048,
      "prospects/pins": 2_048,
    },
  },
};

/** Imports, exports and bulk jobs. */
const KINDS_OF_JOBS = 3;
/** Executions that senders and jobs must leave for API requests. */
const FOR_REQUESTS = 2;
/** Executions of the publisher and the index flush, one for each shard. A new on-demand table has about four shards, one per partition. */
const STREAM_EXECUTIONS = 2 * 4;

/**
 * If few executions are left for the functions that read the stream, a job changes few records at the same time, so that these functions
 * are mostly idle. Lambda cannot limit these functions in an account that can reserve nothing.
 */
const changesAtOnceWith = (left: number): number =>
  Math.max(1, Math.floor(CHANGES_AT_ONCE * Math.min(1, left / STREAM_EXECUTIONS)));

/** The share of the rate of all requests that one company gets. With `production`, it is one request a second for each of 200 reps. */
const COMPANY_SHARE = 0.2;

export function companyThrottle({ perSecond, burst }: Throttle, companyRate = perSecond * COMPANY_SHARE): Throttle {
  return { perSecond: companyRate, burst: Math.ceil((companyRate * burst) / perSecond) };
}

/** The share of a function's concurrency that one company's clients may keep, even if they read no bytes of their streamed responses. */
const READERS_SHARE = 1 / 3;
const BURST_SECONDS = 2;

/**
 * Returns the throttle of one company for a method with a streamed response. A client that reads no bytes keeps an execution busy for
 * `limits.readerMs`. The burst and the requests that the rate allows in this time are together `READERS_SHARE` of the concurrency. With the
 * preset `small`, a third of the ten executions would allow only one request in three seconds, so there is no throttle.
 */
export function streamThrottle(capacity: Capacity, file: string): Throttle | undefined {
  const { accountConcurrency, reserved, provisioned, limitsStreams } = capacity;
  if (!limitsStreams) return undefined;
  const concurrency = reserved[file] ?? accountConcurrency - sumOf(reserved) - sumOf(provisioned);
  const perSecond = (concurrency * READERS_SHARE) / (limits.readerMs / 1_000 + BURST_SECONDS);
  return { perSecond: Math.floor(perSecond * 100) / 100, burst: Math.floor(perSecond * BURST_SECONDS) };
}

/**
 * The functions for which a rep most often waits for a start, according to `npm run cost`. Reps use the map and status changes every
 * minute, so Lambda keeps the environments of those functions without provisioned concurrency.
 */
export const PROVISIONED = ["prospects/list", "prospects/get", "prospects/create"] as const;

interface CapacityChoice {
  readonly preset: Preset;
  readonly accountConcurrency?: number | undefined;
  readonly deliverySenders?: number | undefined;
  readonly companyRate?: number | undefined;
  readonly listMemory?: number | undefined;
  readonly warmEnvironments?: number | undefined;
}

/** Returns the capacity of a preset with the choices of the operator. Throws an error that names the context key to correct. */
export function capacityOf({ preset, ...given }: CapacityChoice): Capacity {
  const plan = plans[preset];
  const accountConcurrency = given.accountConcurrency ?? plan.accountConcurrency;
  const deliverySenders = given.deliverySenders ?? plan.deliverySenders;
  // The deliverer's reservation must equal the maximum concurrency of its event source. With less, Lambda would throttle the deliverer.
  const reserved: Capacity["reserved"] =
    preset === "small" ? {} : { ...plan.reserved, "events/deliver": deliverySenders };
  const { warmEnvironments = 0 } = given;
  const provisioned: Capacity["provisioned"] =
    warmEnvironments === 0 ? {} : Object.fromEntries(PROVISIONED.map((file) => [file, warmEnvironments]));
  assertUnreserved({ preset, ...given }, accountConcurrency, {
    reserved: sumOf(reserved),
    provisioned: sumOf(provisioned),
  });
  const { requests, jobs } = plan;
  const memoryMb = { ...plan.memoryMb, ...(given.listMemory !== undefined && { "prospects/list": given.listMemory }) };
  const background = deliverySenders + KINDS_OF_JOBS * jobs;
  if (background + FOR_REQUESTS > accountConcurrency) {
    throw new Error(
      `context key deliverySenders: ${deliverySenders} senders and ${KINDS_OF_JOBS * jobs} jobs leave fewer than ${FOR_REQUESTS} of the ` +
        `account's ${accountConcurrency} concurrent executions to requests; set accountConcurrency if the account's quota is higher`,
    );
  }
  if (given.companyRate !== undefined && given.companyRate > requests.perSecond) {
    throw new Error(
      `context key companyRate: ${given.companyRate} is more than the ${requests.perSecond} requests a second of all companies together`,
    );
  }
  const company = companyThrottle(requests, given.companyRate);
  const limitsStreams = preset === "production";
  return {
    accountConcurrency,
    requests,
    company,
    deliverySenders,
    jobs,
    changesAtOnce: changesAtOnceWith(accountConcurrency - background - FOR_REQUESTS),
    reserved,
    memoryMb,
    provisioned,
    limitsStreams,
  };
}

const sumOf = (executions: Capacity["reserved"]): number =>
  Object.values(executions).reduce<number>((total, one = 0) => total + one, 0);

/** Throws if reserved and provisioned concurrency leave fewer than `UNRESERVED` executions. Names the setting that causes this. */
function assertUnreserved(
  given: CapacityChoice,
  account: number,
  { reserved, provisioned }: Readonly<Record<"reserved" | "provisioned", number>>,
): void {
  const sum = reserved + provisioned;
  const least = sum + UNRESERVED;
  if (sum === 0 || least <= account) return;
  const other = given.accountConcurrency === undefined ? "deliverySenders" : "accountConcurrency";
  const key = reserved === 0 || reserved + UNRESERVED <= account ? "warmEnvironments" : other;
  throw new Error(
    `context key ${key}: the settings reserve ${sum} of the account's ${account} concurrent executions, and Lambda requires ` +
      `${UNRESERVED} unreserved; reserve fewer, or set accountConcurrency to the account's quota if it is at least ${least}`,
  );
}
