/**
 * Divides the concurrency of an AWS account between the functions. The preset `small` is for a new account and reserves nothing. The preset
 * `production` reserves concurrency for the authorizer and some other functions.
 */

export const presets = ["small", "production"] as const;
export type Preset = (typeof presets)[number];

/** Number of executions that must stay unreserved in the account. Lambda refuses a reservation that leaves fewer than 100 unreserved. */
const UNRESERVED = 100;

/** A throttle: the rate of requests, and the number of requests that may arrive at once. */
export interface Throttle {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The default memory of a function in MB. It also determines the function's share of a processor. With 1 769 MB, a function gets a whole
 * processor, and with less memory proportionally less.
 */
export const MEMORY_MB = 1024;

/**
 * Seconds for which Lambda collects stream records before it starts the index flush (the function that merges changes into a search index).
 * Many writes then cause only one flush. Reads are exact during this time, too, because they also read the changes that are not merged yet.
 */
export const FLUSH_WINDOW_SECONDS = 10;

export interface Capacity {
  readonly accountConcurrency: number;
  /** The throttle of all requests together. API Gateway responds to further requests with 429, without invoking a function. */
  readonly requests: Throttle;
  /** The throttle of each company. Without it, one company could use the whole throttle of all requests. */
  readonly company: Throttle;
  /** Maximum number of concurrent executions of the function that sends webhooks. Each execution sends up to ten deliveries at a time. */
  readonly deliverySenders: number;
  /** Maximum number of concurrent imports. The same number applies to exports, and to bulk jobs. */
  readonly jobs: number;
  /**
   * The reserved concurrency of functions, by file. Other functions cannot use these executions, and the function itself cannot use more.
   * It is empty for a small account.
   */
  readonly reserved: Readonly<Partial<Record<string, number>>>;
  readonly memoryMb: Readonly<Partial<Record<string, number>>>;
  /** The provisioned concurrency of functions, by file: the number of environments that Lambda keeps ready. */
  readonly provisioned: Readonly<Partial<Record<string, number>>>;
}

interface Plan {
  readonly accountConcurrency: number;
  readonly requests: Throttle;
  readonly deliverySenders: number;
  readonly jobs: number;
  readonly reserved: Capacity["reserved"];
  readonly memoryMb: Capacity["memoryMb"];
}

/** The values of each preset. `jobs` must be at least 2, because Lambda requires a maximum concurrency of at least 2 for a queue. */
const plans: Record<Preset, Plan> = {
  /**
   * A new account has 10 concurrent executions and may reserve none. Two webhook senders, two imports, two exports and two bulk jobs use at
   * most eight of them. The remaining two are for all other functions: those of the API, the authorizer, `publish`, `flush` and `sweep`.
   */
  small: {
    accountConcurrency: 10,
    // Ten executions of 100 ms each handle 100 requests per second. Without this throttle, Lambda would refuse further requests, and API
    // Gateway would respond with 500 instead of 429.
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
   * The reservations are computed as follows. `publish` and `flush` need one execution for each shard of the stream, and 20 shards accept
   * about 20 000 writes per second. The authorizer runs for 20 ms once a minute for each caller. If 2 500 callers need it in the same
   * second, it needs 50 executions. The reservations for exports and imports are only upper limits, because these functions run for a long
   * time.
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

/** The number of kinds of jobs: imports, exports and bulk jobs. Each kind has its own queue with a maximum concurrency of `jobs`. */
const KINDS_OF_JOBS = 3;
/** Minimum number of executions that webhook senders and jobs must leave for API requests. */
const FOR_REQUESTS = 2;

/**
 * The share of the rate of all requests that one company may use. With the preset `production`, this is 200 requests per second: a company
 * with 200 reps reaches the limit if each rep sends one request per second.
 */
const COMPANY_SHARE = 0.2;

export function companyThrottle({ perSecond, burst }: Throttle, companyRate = perSecond * COMPANY_SHARE): Throttle {
  return { perSecond: companyRate, burst: Math.ceil((companyRate * burst) / perSecond) };
}

/**
 * The functions for which a rep most often waits while Lambda starts a new environment, according to `npm run simulate`. The functions for
 * the map and for status changes are not in this list, because reps use them every minute. So Lambda keeps their environments.
 */
export const PROVISIONED = ["prospects/list", "prospects/get", "prospects/create"] as const;

export interface CapacityChoice {
  readonly preset: Preset;
  readonly accountConcurrency?: number | undefined;
  readonly deliverySenders?: number | undefined;
  /** Requests per second that one company may send. */
  readonly companyRate?: number | undefined;
  /** The memory of the function that lists prospects, in MB. */
  readonly listMemory?: number | undefined;
  /** The number of environments that Lambda keeps ready for each function in PROVISIONED. */
  readonly warmEnvironments?: number | undefined;
}

/**
 * Returns the capacity for a preset and the given values. Throws an error in three cases: Lambda would refuse the reserved concurrency, the
 * background functions would leave too little concurrency for API requests, or `companyRate` is higher than the rate for all companies
 * together. The message begins with the key of the CDK context that the operator must correct, for example `deliverySenders`.
 */
export function capacityOf({ preset, ...given }: CapacityChoice): Capacity {
  const plan = plans[preset];
  const accountConcurrency = given.accountConcurrency ?? plan.accountConcurrency;
  const deliverySenders = given.deliverySenders ?? plan.deliverySenders;
  // The reserved concurrency of `events/deliver` must equal the maximum concurrency of the event source that invokes it. With a smaller
  // reservation, Lambda would throttle the invocations of the event source.
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
  return { accountConcurrency, requests, company, deliverySenders, jobs, reserved, memoryMb, provisioned };
}

const sumOf = (executions: Capacity["reserved"]): number =>
  Object.values(executions).reduce<number>((total, one = 0) => total + one, 0);

/**
 * Throws an error if Lambda would refuse the reserved and provisioned concurrency. Lambda takes both from the unreserved executions of the
 * account. The message names the setting that causes the excess, so that the operator knows which one to change.
 */
function assertUnreserved(
  { preset, ...given }: CapacityChoice,
  account: number,
  { reserved, provisioned }: Readonly<Record<"reserved" | "provisioned", number>>,
): void {
  const sum = reserved + provisioned;
  const least = sum + UNRESERVED;
  if (sum === 0 || least <= account) return;
  const unreserved = `and Lambda requires ${UNRESERVED} unreserved`;
  const raise = `set accountConcurrency to the account's quota if it is at least ${least}`;
  if (reserved === 0 || reserved + UNRESERVED <= account) {
    const others = reserved === 0 ? "" : `, with ${reserved} of preset ${preset},`;
    throw new Error(
      `context key warmEnvironments: ${given.warmEnvironments} for each of ${PROVISIONED.length} functions${others} reserves ${sum} of the ` +
        `account's ${account} concurrent executions, ${unreserved}; leave out warmEnvironments, or ${raise}`,
    );
  }
  if (given.accountConcurrency === undefined) {
    throw new Error(
      `context key deliverySenders: preset ${preset} with ${given.deliverySenders} senders reserves ${sum} of ${account}, ${unreserved}; ` +
        `set fewer senders, or ${raise}`,
    );
  }
  throw new Error(
    `context key accountConcurrency: preset ${preset} reserves ${sum} of ${account}, ${unreserved}; ` +
      `ask AWS for a quota of at least ${least}, or deploy with -c preset=small`,
  );
}
