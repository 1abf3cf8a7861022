/** The row of a job, held by one run: each write of it demands that nobody else has written it, and prolongs the hold. */
import { type Clock, iso } from "#shared/clock.ts";
import { equals } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** A run that has said nothing for so long is dead. Every call that it makes ends long before. */
export const HOLD_MS = 120_000;
/** It says how far it is this often: whoever waits sees it move, and one write is nothing beside those of the rows. */
const RENEW_MS = 3_000;
/** Hands over when so little is left of its time. */
const RESERVE_MS = 60_000;

/** Somebody else has the job, or has ended it. */
export class JobLost extends Error {
  override readonly name = "JobLost";
}

interface Row {
  readonly version: number;
}

/** What a run works on. `S` is the row as it stands in the table. */
export class Held<S extends Row> {
  readonly #table: Table;
  readonly #clock: Clock;
  readonly #key: Key;
  readonly #parse: (item: unknown) => S;
  readonly #remainingMs: () => number;
  #stored: S;
  #renewedAt = 0;

  constructor(
    { table, clock }: { readonly table: Table; readonly clock: Clock },
    key: Key,
    parse: (item: unknown) => S,
    stored: S,
    remainingMs: () => number,
  ) {
    this.#table = table;
    this.#clock = clock;
    this.#key = key;
    this.#parse = parse;
    this.#stored = stored;
    this.#remainingMs = remainingMs;
  }

  get stored(): S {
    return this.#stored;
  }

  /** Whether this run should hand over, where what comes takes so long. */
  isLate(forMs = 0): boolean {
    return this.#remainingMs() < RESERVE_MS + forMs;
  }

  /** Throws JobLost. */
  async save(set: Partial<S> & Item): Promise<void> {
    const until = this.#clock.now() + HOLD_MS;
    await this.#write({ set: { ...set, runsUntil: until, dueShard: keys.jobShard, dueAt: iso(until) } });
  }

  /** Now and then a sign of life. Throws JobLost. */
  async keep(set: Partial<S> & Item, everyMs = RENEW_MS): Promise<void> {
    if (this.#clock.now() - this.#renewedAt >= everyMs) await this.save(set);
  }

  /** Nobody has it, and somebody is to look after it from now on. */
  async release(set: Partial<S> & Item): Promise<void> {
    const now = this.#clock.now();
    await this.#write({ set: { ...set, runsUntil: now, dueShard: keys.jobShard, dueAt: iso(now) } });
  }

  /** Over: nobody has to look after it any more. Part of a transaction, or by `end`. */
  ending(set: Partial<S> & Item): Extract<Write, { update: Key }> {
    return {
      update: this.#key,
      change: {
        set: { ...set, updatedAt: iso(this.#clock.now()) },
        remove: ["dueShard", "dueAt"],
        add: { version: 1 },
      },
      when: equals("version", this.#stored.version),
    };
  }

  async end(set: Partial<S> & Item): Promise<void> {
    await this.#sent(this.ending(set));
  }

  async #write({ set }: { readonly set: Item }): Promise<void> {
    const now = this.#clock.now();
    const change = { set: { ...set, updatedAt: iso(now) }, add: { version: 1 } };
    await this.#sent({ update: this.#key, change, when: equals("version", this.#stored.version) });
    this.#renewedAt = now;
  }

  async #sent(write: Extract<Write, { update: Key }>): Promise<void> {
    try {
      this.#stored = this.#parse(await this.#table.write(write));
    } catch (error) {
      throw error instanceof ConditionFailed ? new JobLost("somebody else has written the job") : error;
    }
  }
}
