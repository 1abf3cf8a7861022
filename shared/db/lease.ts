/**
 * The lease on a row: one function at a time does the work that the row describes. An attribute of the row contains the end of the lease.
 * From this time on, another function can acquire the lease, for example if the holder was killed. Each new end is later than all ends
 * before it, so the end also identifies the holder.
 */
import type * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import { all, any, atMost, type Change, type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

interface Source {
  readonly table: Table;
  readonly clock: Clock;
}

export interface Lease<Row> {
  readonly key: Key;
  readonly schema: z.ZodMiniType<Row>;
  /** While nobody holds the lease, the attribute is absent, or contains the time from which the lease can be acquired. */
  readonly attribute: string;
  /** Milliseconds from an acquisition or a renewal to the end. The work must renew the lease more often. */
  readonly ms: number;
  /** A function can acquire the lease this many milliseconds before its end, because the clocks of functions differ. */
  readonly earlyMs?: number;
  /** A condition for each acquisition. It must imply that the row exists, unless an acquisition may create the row. */
  readonly isOpen?: Condition;
}

/** Another function has acquired the lease, or its attribute was removed or changed. The caller must write nothing more. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

/** Acquires the lease and makes `change` in one write. Returns undefined and changes nothing if the lease is not free or `isOpen` fails. */
export async function acquire<Row>(
  source: Source,
  lease: Lease<Row>,
  change: Change = {},
): Promise<Held<Row> | undefined> {
  const { key, attribute, ms, earlyMs = 0, isOpen } = lease;
  const now = source.clock.now();
  const until = iso(now + ms);
  const isFree = any(missing(attribute), atMost(attribute, iso(now + earlyMs)));
  const own = { ...change, set: { ...change.set, [attribute]: until } };
  const when = isOpen === undefined ? isFree : all(isOpen, isFree);
  try {
    const item = await source.table.write({ update: key, change: own, when });
    return new Held(source, lease, lease.schema.parse(item), until);
  } catch (error) {
    if (error instanceof ConditionFailed) return undefined;
    throw error;
  }
}

/** An acquired lease. Each write throws LeaseLost, and changes nothing, if another function has acquired the lease or changed its end. */
export class Held<Row> {
  readonly #source: Source;
  readonly #lease: Lease<Row>;
  #row: Row;
  #until: string;

  constructor(source: Source, lease: Lease<Row>, row: Row, until: string) {
    this.#source = source;
    this.#lease = lease;
    this.#row = row;
    this.#until = until;
  }

  /** The row as the last write has left it. */
  get row(): Row {
    return this.#row;
  }

  get until(): string {
    return this.#until;
  }

  /** The condition for a transaction that must fail if the lease is lost. */
  get isHeld(): Condition {
    return equals(this.#lease.attribute, this.#until);
  }

  async renew(change: Change = {}): Promise<void> {
    const { clock } = this.#source;
    await this.#write(iso(clock.now() + this.#lease.ms), change);
  }

  /** Ends the lease at `atMs`. */
  release(atMs: number, change: Change = {}): Promise<void> {
    return this.#write(iso(atMs), change);
  }

  /** Ends the lease and removes its attribute. Returns false, and keeps the lease, if `when` fails. */
  async end(change: Change = {}, when?: Condition): Promise<boolean> {
    const { attribute } = this.#lease;
    const own = { ...change, remove: [...(change.remove ?? []), attribute] };
    try {
      await this.#send(own, when === undefined ? this.isHeld : all(this.isHeld, when));
      return true;
    } catch (error) {
      if (isStill(error, attribute, this.#until)) return false;
      throw lostOr(error);
    }
  }

  async #write(until: string, change: Change): Promise<void> {
    const own = { ...change, set: { ...change.set, [this.#lease.attribute]: until } };
    try {
      await this.#send(own, this.isHeld);
    } catch (error) {
      throw lostOr(error);
    }
    this.#until = until;
  }

  async #send(change: Change, when: Condition): Promise<void> {
    const { key, schema } = this.#lease;
    this.#row = schema.parse(await this.#source.table.write({ update: key, change, when }));
  }
}

const isStill = (error: unknown, attribute: string, until: string): boolean =>
  error instanceof ConditionFailed && error.failed.some(({ item }) => item?.[attribute] === until);

const lostOr = (error: unknown): unknown =>
  error instanceof ConditionFailed ? new LeaseLost("another function has acquired the lease", { cause: error }) : error;

/** Calls `work` if the lease is free. If `work` fails, releases the lease, so that a repetition need not wait. Ignores a LeaseLost. */
export async function whileHeld<Row>(
  source: Source,
  lease: Lease<Row>,
  change: Change,
  work: (held: Held<Row>) => Promise<void>,
): Promise<void> {
  const held = await acquire(source, lease, change);
  if (held === undefined) return;
  try {
    await work(held);
  } catch (error) {
    if (error instanceof LeaseLost) return;
    await held.release(source.clock.now()).catch(() => undefined);
    throw error;
  }
}
