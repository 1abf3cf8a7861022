/** Presets for the concurrency of an AWS account: `small` fits a new account, `production` reserves some for background work. */

export const presets = ["small", "production"] as const;
export type Preset = (typeof presets)[number];

/** Lambda requires that this much of an account's concurrency stays unreserved. */
const UNRESERVED = 100;

export interface Capacity {
  /** The account's quota of concurrent executions. */
  readonly accountConcurrency: number;
  /** Concurrent delivery senders, each with up to ten messages. */
  readonly deliverySenders: number;
  /** Concurrent import jobs, and concurrent export jobs. */
  readonly jobs: number;
  /** Reserved concurrency by file: other functions cannot use it, and the function cannot exceed it. Empty in a small account. */
  readonly reserved: Readonly<Partial<Record<string, number>>>;
  /** Memory by file, of functions that cache many company indexes. `npm run bench:cache` computes it. */
  readonly memoryMb: Readonly<Partial<Record<string, number>>>;
}

interface Plan {
  readonly accountConcurrency: number;
  readonly deliverySenders: number;
  readonly jobs: number;
  readonly reserved: Capacity["reserved"];
  readonly memoryMb: Capacity["memoryMb"];
}

/** Lambda requires a concurrency of at least two for the event source of a queue. */
const plans: Record<Preset, Plan> = {
  /** A new account has a concurrency of 10, which must stay unreserved: 4 senders and two jobs leave some for requests. */
  small: {
    accountConcurrency: 10,
    deliverySenders: 4,
    jobs: 2,
    reserved: {},
    // A new account allows at most 3 008 MB.
    memoryMb: { "prospects/list": 2_048, "prospects/pins": 2_048 },
  },
  /**
   * `publish` and `flush` run once for each shard of the stream; 20 shards take about 20 000 writes a second. The authorizer takes
   * 20 ms for each caller once a minute, so 50 of them admit 2 500 callers a second. A streamed export lasts as long as its reader
   * takes, and an import up to 25 s: for these two the reservation matters as an upper bound.
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

/** Throws an error that names the context key if Lambda would refuse the deployment, or if senders would take all concurrency. */
export function capacityOf({ preset, ...given }: CapacityChoice): Capacity {
  const plan = plans[preset];
  const accountConcurrency = given.accountConcurrency ?? plan.accountConcurrency;
  const deliverySenders = given.deliverySenders ?? plan.deliverySenders;
  // The concurrency of its event source: a lower reservation would throttle it.
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
