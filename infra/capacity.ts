/**
 * Presets for the concurrency of an AWS account. The preset `small` fits a new account, and `production` reserves concurrency for
 * background work.
 */

export const presets = ["small", "production"] as const;
export type Preset = (typeof presets)[number];

/** Lambda requires that at least this much of an account's concurrency is unreserved. */
const UNRESERVED = 100;

export interface Capacity {
  /** The account's quota of concurrent executions. */
  readonly accountConcurrency: number;
  /** The maximum number of concurrent delivery senders. Each sends up to ten messages. */
  readonly deliverySenders: number;
  /** The maximum number of concurrent import jobs, and also of concurrent export jobs. */
  readonly jobs: number;
  /**
   * The reserved concurrency of functions, by file. Other functions cannot use it, and the function cannot exceed it. A small account has
   * none.
   */
  readonly reserved: Readonly<Partial<Record<string, number>>>;
  /** The memory of functions that cache many company indexes, by file. `npm run bench:cache` computes the values. */
  readonly memoryMb: Readonly<Partial<Record<string, number>>>;
}

interface Plan {
  readonly accountConcurrency: number;
  readonly deliverySenders: number;
  readonly jobs: number;
  readonly reserved: Capacity["reserved"];
  readonly memoryMb: Capacity["memoryMb"];
}

/** Lambda requires that the event source of a queue has a concurrency of at least two. */
const plans: Record<Preset, Plan> = {
  /** A new account has a concurrency of 10, which must be unreserved. Four senders and two jobs leave the rest for requests. */
  small: {
    accountConcurrency: 10,
    deliverySenders: 4,
    jobs: 2,
    reserved: {},
    // A new account allows functions at most 3 008 MB of memory.
    memoryMb: { "prospects/list": 2_048, "prospects/pins": 2_048 },
  },
  /**
   * `publish` and `flush` run one time for each shard of the stream, and 20 shards accept about 20 000 writes a second. The authorizer
   * needs 20 ms for each caller each minute, so a concurrency of 50 admits 2 500 callers a second. A streamed export lasts as long as the
   * client reads, and an import lasts up to 25 s. For these two functions the reservation is needed as an upper bound.
   */
  production: {
    accountConcurrency: 1_000,
    deliverySenders: 50,
    jobs: 10,
    reserved: {
      authorize: 50,
      "events/publish": 20,
      "index/flush": 20,
      "prospects/export": 50,
      "prospects/import": 50,
    },
    memoryMb: { "prospects/list": 5_120, "prospects/pins": 2_048 },
  },
};

export interface CapacityChoice {
  readonly preset: Preset;
  readonly accountConcurrency?: number | undefined;
  readonly deliverySenders?: number | undefined;
}

/** Throws an error that names the context key if Lambda would refuse the deployment, or if the senders would use all concurrency. */
export function capacityOf({ preset, ...given }: CapacityChoice): Capacity {
  const plan = plans[preset];
  const accountConcurrency = given.accountConcurrency ?? plan.accountConcurrency;
  const deliverySenders = given.deliverySenders ?? plan.deliverySenders;
  // Reserve the concurrency of the function's event source, because a lower reservation would throttle the function.
  const reserved: Capacity["reserved"] =
    preset === "small" ? {} : { ...plan.reserved, "events/deliver": deliverySenders };
  const sum = Object.values(reserved).reduce<number>((total, one = 0) => total + one, 0);
  if (sum > 0 && sum + UNRESERVED > accountConcurrency) {
    throw new Error(
      `context key accountConcurrency: preset ${preset} reserves ${sum} of ${accountConcurrency}, and Lambda requires ${UNRESERVED} ` +
        "unreserved; ask AWS for a higher quota, or deploy with -c preset=small",
    );
  }
  if (deliverySenders >= accountConcurrency) {
    throw new Error(
      `context key deliverySenders: ${deliverySenders} would take all ${accountConcurrency} functions that run at once in the ` +
        "account; -c accountConcurrency=N says how many its quota allows",
    );
  }
  return { accountConcurrency, deliverySenders, jobs: plan.jobs, reserved, memoryMb: plan.memoryMb };
}
