/** How a deployment shares the concurrency of its AWS account: what a new account accepts, and what one in production keeps free for background work. */

export const presets = ["small", "production"] as const;
export type Preset = (typeof presets)[number];

/** Lambda wants this much of an account's concurrency without a reservation. */
const UNRESERVED = 100;

export interface Capacity {
  /** Functions that run at once in the account, as its quota says. */
  readonly accountConcurrency: number;
  /** Delivery senders at once, each with up to ten messages. */
  readonly deliverySenders: number;
  /** Imports at work at once, and exports. */
  readonly jobs: number;
  /** Of functions, by their files: room that nobody else can take, and that they cannot exceed. Nothing where the account has too little. */
  readonly reserved: Readonly<Partial<Record<string, number>>>;
  /** Of functions, by their files, that keep more company indexes in memory than others; the model is `npm run bench:cache`. */
  readonly memoryMb: Readonly<Partial<Record<string, number>>>;
}

interface Plan {
  readonly accountConcurrency: number;
  readonly deliverySenders: number;
  readonly jobs: number;
  readonly reserved: Capacity["reserved"];
  readonly memoryMb: Capacity["memoryMb"];
}

/** Two is the least that an event source of a queue may have. */
const plans: Record<Preset, Plan> = {
  /** A new account has 10, all of which stay unreserved: 4 senders and a job or two leave some for requests. */
  small: {
    accountConcurrency: 10,
    deliverySenders: 4,
    jobs: 2,
    reserved: {},
    // A new account has no more than 3 008 for a function.
    memoryMb: { "prospects/list": 2_048, "prospects/pins": 2_048 },
  },
  /**
   * `publish` and `flush` run once per shard of the stream, of which 20 stand for some 20 000 writes a second. A sign-in takes the
   * authorizer 20 ms once a minute, so that 50 of them let 2 500 in each second. An export streams for as long as its reader takes, and
   * an import is at work for up to 25 s: for these it is the bound that counts.
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

/** Throws an error that names the context key where Lambda would refuse the deployment, or requests would have no room. */
export function capacityOf({ preset, ...given }: CapacityChoice): Capacity {
  const plan = plans[preset];
  const accountConcurrency = given.accountConcurrency ?? plan.accountConcurrency;
  const deliverySenders = given.deliverySenders ?? plan.deliverySenders;
  // As many as its event source starts at once: fewer would throttle it.
  const reserved: Capacity["reserved"] =
    preset === "small" ? {} : { ...plan.reserved, "events/deliver": deliverySenders };
  const sum = Object.values(reserved).reduce<number>((total, one = 0) => total + one, 0);
  if (sum > 0 && sum + UNRESERVED > accountConcurrency) {
    throw new Error(
      `context key accountConcurrency: preset ${preset} reserves ${sum} of ${accountConcurrency}, and Lambda wants ${UNRESERVED} ` +
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
