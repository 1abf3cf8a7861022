/**
 * Checks the rule of `GET /api/changes`: a client that applies the items holds exactly what the lists show. The rule must hold after any
 * sequence of writes, flushes, merges, imports and rebuilds, while time passes and rights change, and with lost and repeated pages. A
 * client also gets no id of a note or appointment that its user never saw.
 */
import fc from "fast-check";
import { expect, inject } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError, isTransient } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { type ChangesPage, ChangeType } from "#shared/sync/changes/schema.ts";
import { CompanyModel, callerOf } from "./company-model.ts";
import { CompanyWrites, isWrite, type WriteKind, writeWeights } from "./company-writes.ts";
import { Device } from "./device.ts";
import { listed } from "./listed.ts";

export interface Stage {
  readonly context: ApiContext;
  readonly owner: Caller;
  /** Users with the role sales and without permissions. */
  readonly reps: readonly Caller[];
}

/** A test company whose clock the test sets. */
export interface TimedStage extends Stage {
  readonly time: { nowMs: number };
  /** The context of devices and flushes, whose calls may fail. By default, they use the context of the writes. */
  readonly disturbed?: ApiContext;
}

/** Repeats work that fails because of the table, up to 20 attempts. Devices, and the event source that starts flushes, do the same. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error) || attempt === 20) throw error;
    }
  }
}

/**
 * Writes of names, and writes (such as `cancel`) after which the beginning of an appointment no longer raises the version of its prospect.
 * The checksums of a page that is read at the same time may already include such a write, so they are not compared.
 */
const disturbing: ReadonlySet<Step["kind"]> = new Set<WriteKind>([
  ...(["renameStatus", "renameTag", "dropTag", "renameUser"] as const),
  ...(["assign", "hide", "move", "cancel"] as const),
]);

const otherWeights = { flush: 7, later: 4, pull: 12, lose: 2, repeat: 2 } as const;

/** One step: a write, a flush, a wait, or a request of a device. `a` and `b` choose the record, the user, the device and so on. */
export interface Step {
  readonly kind: WriteKind | keyof typeof otherWeights;
  readonly a: number;
  readonly b: number;
}

const kinds: readonly Step["kind"][] = Object.entries({ ...writeWeights, ...otherWeights }).flatMap(([kind, weight]) =>
  isWrite(kind) || isOther(kind) ? Array.from({ length: weight }, () => kind) : [],
);

function isOther(kind: string): kind is keyof typeof otherWeights {
  return Object.hasOwn(otherWeights, kind);
}

const step: fc.Arbitrary<Step> = fc.record({ kind: fc.constantFrom(...kinds), a: fc.nat(1_000), b: fc.nat(1_000) });

/** Generates groups of steps. The steps of a group run at the same time. Most faults need long sequences, with records of all types. */
export const scripts = (minLength: number, maxLength: number) =>
  fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength, maxLength, size: "max" });

export const longScripts = scripts(40, 80);

const DEVICES = 8;
const pulls: Step[][] = Array.from({ length: DEVICES }, (_, a) => [{ kind: "pull", a, b: 0 }]);
const eachWrite = Object.keys(writeWeights).filter(isWrite);
/**
 * A script with each kind of write to records of all types. One device gets each change while it is unflushed, and the others get it after
 * it is flushed. Random scripts contain a certain write only by chance.
 */
export const everyWrite: Step[][] = [
  ...eachWrite.filter((kind) => kind !== "withdraw").map((kind): Step[] => [{ kind, a: 1, b: 1 }]),
  ...pulls,
  ...eachWrite.flatMap((kind, i): Step[][] => [
    [{ kind, a: 0, b: i }],
    [{ kind: "pull", a: i, b: 0 }],
    ...(i % 3 === 0 ? [[{ kind: "flush" as const, a: 0, b: 0 }]] : []),
  ]),
];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CURSOR_MS = 60 * DAY_MS;
/**
 * Durations of the waits in milliseconds. After some hours, appointments have begun. After 31 days, invitations (30 days) have expired.
 * After several long waits, cursors (60 days) have expired.
 */
const waits = [1, 2, 3, 4, 1, 2, 3, 4, 8 * 24, 8 * 24, 8 * 24, 31 * 24].map((hours) => hours * HOUR_MS);

interface Attached {
  readonly prospect: number;
  /**
   * A time in milliseconds since 1970, not later than the creation of the record. If it is too early, the check may miss a fault, but it
   * reports no wrong one.
   */
  readonly madeMs: number;
}

/**
 * Checks that a user who sees only own prospects gets no id of a note or appointment that the user never saw. A user has seen a note or
 * appointment only if its prospect was assigned to the user at some time since the note or appointment was created.
 */
class Sight {
  /**
   * For each prospect, the users who have ever been its assignee, each with a time in milliseconds since 1970. The last assignment of a
   * former assignee ended at this time or earlier. For the present assignee, it is the time of the last call of `learn`.
   */
  readonly #assignees = new Map<number, Map<number, number>>();
  readonly #records = new Map<number, Attached>();
  #current = new Map<number, number | null>();
  #items: { readonly userId: number; readonly id: number }[] = [];
  #beginMs = 0;

  /** Remembers the notes and appointments of a page. `learn` checks them when all writes that ran at the same time have ended. */
  note(userId: number, { items }: ChangesPage): void {
    const attached = items.filter(({ type }) => type === "notes" || type === "appointments");
    this.#items.push(...attached.map(({ id }) => ({ userId, id })));
  }

  /** Learns the present state of the company, and checks the pages since the last call. */
  learn({ prospects, notes, appointments }: CompanyModel, nowMs: number): void {
    for (const [id, { assignee }] of prospects) {
      const assignees = this.#assignees.get(id) ?? new Map<number, number>();
      this.#assignees.set(id, assignees);
      for (const user of [this.#current.get(id) ?? null, assignee]) if (user !== null) assignees.set(user, nowMs);
    }
    this.#current = new Map([...prospects].map(([id, { assignee }]) => [id, assignee]));
    for (const [id, { prospect }] of [...notes, ...appointments]) {
      if (!this.#records.has(id)) this.#records.set(id, { prospect, madeMs: this.#beginMs });
    }
    for (const { userId, id } of this.#items) {
      const { prospect = 0, madeMs = 0 } = this.#records.get(id) ?? {};
      const untilMs = this.#assignees.get(prospect)?.get(userId) ?? 0;
      const message = `record ${id} of prospect ${prospect}, made ${madeMs}, in the feed of user ${userId}`;
      expect(untilMs, message).toBeGreaterThanOrEqual(madeMs - limits.clockDifferenceMs);
    }
    this.#items = [];
    this.#beginMs = nowMs;
  }
}

/**
 * The state of the test at a device's first request, or at its last request that reached the end of the changes. By comparing it with the
 * present state, the test knows for which reasons the service may refuse the device's cursor.
 */
interface Mark {
  readonly nowMs: number;
  readonly rebuilds: number;
  readonly seesAll: boolean;
}

export class Run {
  readonly #stage: TimedStage;
  readonly #model = new CompanyModel();
  readonly #writes: CompanyWrites;
  readonly #devices: Device[];
  readonly #marks = new Map<Device, Mark>();
  readonly #sight = new Sight();
  readonly #busy = new Set<Device>();
  #rebuilds = 0;
  /** True while a group of steps runs that contains one of the `disturbing` writes. */
  #isDisturbed = false;

  constructor(stage: TimedStage) {
    this.#stage = stage;
    const { context, owner, reps } = stage;
    const repIds = reps.map(({ userId }) => userId);
    this.#writes = new CompanyWrites(context, owner, repIds, this.#model);
    const [first = 0, second = 0, third = 0] = repIds;
    const all = ChangeType.options;
    this.#devices = [
      new Device(owner.userId, all, [500]),
      new Device(first, all, [3, 1, 25]),
      new Device(second, all, [500]),
      new Device(third, all, [2, 50, 7]),
      new Device(owner.userId, ["notes", "appointments"], [1, 12, 2]),
      new Device(first, ["notes", "appointments", "tags"], [500]),
      new Device(second, ["prospects"], [4, 1]),
      new Device(third, ["territories", "statuses", "users"], [1, 6]),
    ];
  }

  async play(groups: readonly (readonly Step[])[]): Promise<void> {
    await this.#learnStatuses();
    for (const group of groups) {
      this.#busy.clear();
      this.#writes.release();
      // A page uses copies of records in the change log only if they are later than the device's last request, so the clock advances.
      this.#stage.time.nowMs += 10;
      this.#isDisturbed = group.some(({ kind }) => disturbing.has(kind));
      await Promise.all(group.map((one) => this.#play(one, group.length === 1)));
      this.#sight.learn(this.#model, this.#stage.time.nowMs);
    }
    await this.expectAllEqual();
  }

  /** Adds to the model the statuses that a new company has from the beginning. */
  async #learnStatuses(): Promise<void> {
    const { items } = await this.#request(new Device(this.#stage.owner.userId, ["statuses"], [500]));
    for (const { id, data } of items) this.#model.statuses.set(id, { isActive: Object(data).isActive });
  }

  async #play({ kind, a, b }: Step, isAlone: boolean): Promise<void> {
    if (isWrite(kind)) {
      if (kind === "rebuildIndex") this.#rebuilds++;
      await this.#writes.make(kind, a, b, isAlone);
    } else if (kind === "flush") await this.#flush();
    else if (kind === "later") this.#stage.time.nowMs += waits[b % waits.length] ?? 0;
    else await this.#pull(kind, a, isAlone);
  }

  async #pull(kind: "pull" | "lose" | "repeat", a: number, isAlone: boolean): Promise<void> {
    const device = this.#devices[a % this.#devices.length];
    if (device === undefined || this.#busy.has(device)) return;
    this.#busy.add(device);
    if (isAlone && kind === "pull" && a % 3 === 0) return this.#expectEqual(device);
    const mark = this.#marks.get(device);
    const page = await this.#page(device);
    if (kind === "lose") {
      // The device does not get the page, so it keeps its old cursor. `#page` may have stored a new mark (the state with which the test
      // checks refusals of the cursor). The mark that belongs to the old cursor is therefore restored.
      if (mark !== undefined) this.#marks.set(device, mark);
      return;
    }
    device.apply(page);
    if (kind === "repeat") device.apply(page);
    // Steps that run at the same time may write. The checksum of prospects must be exact unless one of these writes is `disturbing`.
    if (!page.hasMore && !this.#isDisturbed) expect(page.checksums?.prospects).toBe(device.checksums().prospects);
  }

  #flush(): Promise<unknown> {
    const { context, disturbed = context, owner } = this.#stage;
    return again(() => flush(disturbed, owner.companyId, { least: 1, settleMs: 0 }));
  }

  #request({ userId, types, cursor, limit }: Device): Promise<ChangesPage> {
    const { context, disturbed = context, owner } = this.#stage;
    const caller = callerOf(this.#model, owner.companyId, userId);
    const query = { cursor, limit, types: cursor === undefined ? [...types] : undefined, checksum: true };
    return again(() => readChanges(disturbed, caller, query));
  }

  /** Requests the next page. If the service refuses the cursor, the device deletes its copies and requests the first page again. */
  async #page(device: Device): Promise<ChangesPage> {
    const isFirst = device.cursor === undefined;
    const before = this.#mark(device);
    try {
      const page = await this.#request(device);
      if (!before.seesAll) this.#sight.note(device.userId, page);
      if (isFirst || !page.hasMore) this.#marks.set(device, before);
      return page;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "sync_reset_required") throw error;
      // Steps that run at the same time may have advanced the clock or begun a rebuild since the request began. Both are valid reasons to
      // refuse the cursor.
      const { nowMs, rebuilds } = this.#mark(device);
      this.#expectReason(this.#marks.get(device), { ...before, nowMs, rebuilds }, error.members.reason);
      device.reset();
      return this.#page(device);
    }
  }

  #mark = ({ userId }: Device): Mark => ({
    nowMs: this.#stage.time.nowMs,
    rebuilds: this.#rebuilds,
    seesAll: this.#model.seesAll(userId),
  });

  /** Fails the test if `reason` does not explain why the service refused the cursor, because a new snapshot is expensive for a device. */
  #expectReason(then: Mark | undefined, now: Mark, reason: unknown): void {
    if (then === undefined) throw new Error("the first page was refused");
    const isOld = now.nowMs - then.nowMs > CURSOR_MS;
    const reasons = [
      ...(isOld ? ["expired"] : []),
      ...(now.seesAll === then.seesAll ? [] : ["scope_changed"]),
      ...(isOld || this.#rebuilds > then.rebuilds ? ["log_restarted"] : []),
    ];
    expect(reasons).toContain(reason);
  }

  async expectAllEqual(): Promise<void> {
    for (const device of this.#devices) await this.#expectEqual(device);
  }

  /** Reads the device's changes to the end. Then compares the device's copies with the service's lists. */
  async #expectEqual(device: Device): Promise<void> {
    const { userId, types } = device;
    const name = `the device of user ${userId} with ${types}`;
    for (let pages = 0; ; pages++) {
      const { limit } = device;
      const page = await this.#page(device);
      device.apply(page);
      expect(page.items.length, name).toBeLessThanOrEqual(limit);
      expect(page.cursor.length, name).toBeLessThanOrEqual(512);
      expect(page.checksums, name).toEqual(page.hasMore ? undefined : device.checksums());
      if (!page.hasMore) break;
      expect(pages, name).toBeLessThan(1_000);
    }
    const { context, owner } = this.#stage;
    const caller = callerOf(this.#model, owner.companyId, userId);
    expect(device.copies(), `copies of ${name}`).toEqual(await listed(context, caller, types));
    const idle = await this.#page(device);
    const checksums = device.checksums();
    expect(idle, name).toMatchObject({ phase: "changes", items: [], hasMore: false, checksums });
  }
}

/** Number of sequences that run at the same time, so that the processor works while a sequence waits for the table. */
const LANES = 4;

/** Plays random sequences, each on a new stage. Stops at the first that fails, without shrinking it, because this would take hours. */
export function playRandom(sequences: typeof longScripts, numRuns: number, newStage: () => Promise<TimedStage>) {
  const drawn = fc.sample(sequences, { numRuns, seed: inject("seed") });
  return mapConcurrently(drawn, LANES, async (groups) => new Run(await newStage()).play(groups));
}
