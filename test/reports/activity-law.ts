/**
 * Checks that activity reports have the counts of a simple list of what users have done, after any writes, imports, rebuilds and killed
 * flushes.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { importedWrite } from "#shared/company-index/activity/log.ts";
import { ImportCollector } from "#shared/company-index/facts.ts";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { addRows } from "#shared/company-index/write/publish.ts";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { type ActivityQuery, activityReport } from "#shared/reports/activity.ts";
import { tableKilledAt, unlessKilled } from "../harness/killable.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { rectangle } from "../harness/rings.ts";
import * as verbs from "../harness/verbs.ts";

const HOUR_MS = 3_600_000;
/** Offsets from UTC in hours. These zones have no summer time, so the test finds the local day without the service's code. */
const zones = { UTC: 0, "America/Phoenix": -7, "Asia/Kathmandu": 5.75 } as const;
const zoneNames = ["UTC", "America/Phoenix", "Asia/Kathmandu"] as const;
const groupings = ["user", "status", "day", "territory"] as const;
/** The longitudes of the western and eastern edges of two overlapping territories. Both extend from latitude 0 to latitude 10. */
const bands = [
  [0, 6],
  [4, 10],
] as const;

type Kind = "statusChanges" | "notes" | "appointments" | "creations";

interface Done {
  readonly kind: Kind;
  readonly userId: number;
  readonly at: number;
  readonly statusId: number | null;
  readonly prospectId: number;
}

interface Live {
  readonly lng: number;
  statusId: number | null;
  noteIds: number[];
  appointmentIds: number[];
}

/** The kinds of steps, and how often they occur in random scripts. */
const kinds = [
  ["create", 5],
  ["status", 6],
  ["rename", 1],
  ["note", 3],
  ["appointment", 2],
  ["edit", 2],
  ["remove", 2],
  ["delete", 1],
  ["user", 1],
  ["import", 1],
  ["flush", 7],
  ["rebuild", 1],
  ["wait", 3],
  ["report", 3],
] as const;

export interface Step {
  readonly kind: (typeof kinds)[number][0];
  readonly a: number;
  readonly b: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(...kinds.map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) }))),
  a: fc.nat(1_000),
  b: fc.nat(1_000),
});
export const scripts = fc.array(step, { minLength: 10, maxLength: 50 });

const whole = { a: 0, b: 4 };
/**
 * Scripts that random steps rarely form, one for each kind of change. The change occurs just before and just after a whole flush, and when
 * earlier facts are in the daily sums. A second change of a status restores the first status. Some changes are in the same millisecond.
 */
export const rareScripts: [Step[]][] = (
  ["status", "note", "appointment", "edit", "remove", "rename", "delete", "user"] as const
).map((kind) => {
  const prepared: Step[] = [
    { kind: "create", a: 1, b: 2 },
    { kind: "create", a: 3, b: 2 },
    { kind: "note", a: 0, b: 2 },
    { kind: "appointment", a: 0, b: 2 },
  ];
  const change = (b: number): Step => ({ kind, a: 0, b });
  const flushed: Step = { kind: "flush", ...whole };
  const report: Step = { kind: "report", a: 100, b: 0 };
  const early = [...prepared, change(5), flushed, change(2), report, flushed, ...[3, 28, 14, 28].map(change)];
  // Facts reach the daily sums (counts) only after some flushes. From then on, the service cannot recognise a copy of a fact by its id.
  const summed = Array.from({ length: 4 }, (): Step[] => [{ kind: "rename", a: 0, b: 2 }, flushed]).flat();
  return [[...early, ...prepared, ...summed, change(2), report, flushed, change(4)]];
});

export class Run {
  readonly #context: ApiContext;
  readonly #owner: Caller;
  readonly #rep: Caller;
  readonly #clock: { ms: number };
  readonly #done: Done[] = [];
  readonly #live = new Map<number, Live>();
  #statusIds: readonly number[] = [];
  #territoryIds: readonly number[] = [];

  constructor(context: ApiContext, owner: Caller, repId: number, clock: { ms: number }) {
    this.#context = { ...context, clock: { now: () => clock.ms } };
    this.#owner = owner;
    this.#rep = { companyId: owner.companyId, userId: repId, role: "sales", permissions: [] };
    this.#clock = clock;
  }

  async play(steps: readonly Step[]): Promise<void> {
    const { companyId } = this.#owner;
    this.#statusIds = [...(await loadDictionary(this.#context.table, companyId)).statuses.keys()];
    const ids: number[] = [];
    for (const [west, east] of bands) {
      const shape = { name: `${west}`, polygon: rectangle(west, 0, east, 10) };
      const input = { ...shape, totalProperties: 0, assignedToUserId: null };
      ids.push((await verbs.createTerritory(this.#context, this.#owner, input)).id);
    }
    this.#territoryIds = ids;
    for (const one of steps) {
      await this.#play(one);
      this.#clock.ms += one.b % 7;
    }
    for (const groupBy of groupings.keys()) await this.#expectReport({ kind: "report", a: groupBy, b: 0 }, true);
  }

  async #play(one: Step): Promise<void> {
    const { kind, a, b } = one;
    const caller = a % 3 === 0 ? this.#rep : this.#owner;
    if (kind === "create") return this.#create(caller, a, b);
    if (kind === "import") return this.#import(1 + (a % 5), b);
    if (kind === "flush") return this.#flush(a, b);
    if (kind === "user") return this.#changeRep(one);
    if (kind === "wait") this.#clock.ms += (1 + (a % 40)) * HOUR_MS;
    if (kind === "report") {
      // A fact is one thing that a user has done. While a report is read, flushes may move facts from the unflushed entries into the log,
      // and from the log into the daily sums. The report must count each fact exactly once.
      const flushes = [0, 3].map((turn) => (b % 2 === 0 ? undefined : this.#flush(turn, turn)));
      await Promise.all([this.#expectReport(one, false), ...flushes]);
      return;
    }
    if (kind === "rebuild") {
      await rebuild(this.#context, indexRecords(this.#context.table), this.#owner.companyId, { settleMs: 0 });
    }
    const found = [...this.#live][a % Math.max(1, this.#live.size)];
    if (found !== undefined) await this.#change(kind, found, b);
  }

  /** Renames the rep, whose counts stay in the report, also while the rep is disabled. */
  async #changeRep({ b }: Step): Promise<void> {
    const { userId } = this.#rep;
    await verbs.updateUser(this.#context, this.#owner, userId, { firstName: `n${b}`, isActive: false });
    await this.#expectReport({ kind: "report", a: 0, b: 0 }, true);
    await verbs.updateUser(this.#context, this.#owner, userId, { isActive: true });
  }

  #statusAt(b: number): number | null {
    return [null, ...this.#statusIds.slice(0, 3)][b % 4] ?? null;
  }

  async #create({ userId, ...rest }: Caller, a: number, b: number): Promise<void> {
    const [lng, statusId] = [a % 13, this.#statusAt(b)];
    const status = statusId === null ? {} : { currentStatusId: statusId };
    const { id } = await verbs.createProspect(this.#context, { userId, ...rest }, { lat: 5, lng, ...status });
    const at = this.#clock.ms;
    this.#live.set(id, { lng, statusId, noteIds: [], appointmentIds: [] });
    this.#done.push({ kind: "creations", userId, at, statusId, prospectId: id });
    if (statusId !== null) this.#done.push({ kind: "statusChanges", userId, at, statusId, prospectId: id });
  }

  /** Changes a prospect as the owner. The rep cannot make all changes, because some prospects are not visible to the rep. */
  async #change(kind: Step["kind"], [id, live]: readonly [number, Live], b: number): Promise<void> {
    const { userId } = this.#owner;
    const [context, owner] = [this.#context, this.#owner];
    // If `b` is odd, a device that was offline sends the change up to 49 hours after it occurred. Otherwise the change occurs now.
    const at = b % 2 === 0 ? this.#clock.ms : this.#clock.ms - (b % 50) * HOUR_MS;
    const arrival = b % 2 === 0 ? {} : { occurredAt: new Date(at).toISOString() };
    if (kind === "status") {
      const statusId = this.#statusAt(b);
      if (statusId === live.statusId) return;
      await verbs.updateProspect(context, owner, id, { currentStatusId: statusId }, arrival);
      live.statusId = statusId;
      this.#done.push({ kind: "statusChanges", userId, at, statusId, prospectId: id });
    } else if (kind === "note") {
      live.noteIds.push((await verbs.createNote(context, owner, id, { body: "at home" }, arrival)).id);
      this.#done.push({ kind: "notes", userId, at, statusId: null, prospectId: id });
    } else if (kind === "appointment") {
      const input = { title: "Visit", startAt: "2027-01-01T10:00:00.000Z" };
      live.appointmentIds.push((await verbs.createAppointment(context, owner, id, input, arrival)).id);
      this.#done.push({ kind: "appointments", userId, at, statusId: null, prospectId: id });
    } else if (kind === "edit") {
      // A changed note, or an appointment that is moved to another day, is no new fact.
      const [note, appointment] = [live.noteIds.at(-1), live.appointmentIds.at(-1)];
      if (note !== undefined) await verbs.updateNote(context, owner, note, { body: `edited ${b}` });
      if (appointment !== undefined) {
        const startAt = new Date(at + b * HOUR_MS).toISOString();
        await verbs.updateAppointment(context, owner, appointment, { startAt });
      }
    } else if (kind === "remove") {
      const [note, appointment] = [live.noteIds.pop(), live.appointmentIds.pop()];
      if (note !== undefined) await verbs.deleteNote(context, owner, note);
      if (appointment !== undefined) await verbs.deleteAppointment(context, owner, appointment);
    } else if (kind === "rename") {
      await verbs.updateProspect(context, owner, id, { name: `n${b}` });
    } else if (kind === "delete") {
      await verbs.deleteProspect(context, owner, id);
      this.#live.delete(id);
    }
  }

  async #import(count: number, b: number): Promise<void> {
    const { companyId, userId } = this.#owner;
    const at = this.#clock.ms;
    const createdAt = new Date(at).toISOString();
    const ids = await this.#context.ids.takeProspects(companyId, count);
    const rows = ids.map((id, i) => {
      const lng = (b + i) % 13;
      const statusId = this.#statusAt(b + i);
      this.#live.set(id, { lng, statusId, noteIds: [], appointmentIds: [] });
      this.#done.push({ kind: "creations", userId, at, statusId, prospectId: id });
      if (statusId !== null) this.#done.push({ kind: "statusChanges", userId, at, statusId, prospectId: id });
      if (i % 2 === 0) this.#done.push({ kind: "notes", userId, at, statusId: null, prospectId: id });
      return prospectRow({ companyId, id, lat: 5, lng, statusId, createdAt });
    });
    await this.#context.table.batchPut(
      rows.map((row) => ({ ...keys.prospect(companyId, row.id), ...prospectItem(row) })),
    );
    const note = (prospectId: number) => ({ prospectId, noteId: prospectId, version: 1, text: "from a file" });
    const indexed = rows.map((row, i) => ({ row: indexRow(row), notes: i % 2 === 0 ? [note(row.id)] : [] }));
    const collector = new ImportCollector(userId, ids[0] ?? 0, ids.at(-1) ?? 0);
    const passed = [...collector.passing(indexed)];
    const logged = (version: number) => [importedWrite(companyId, version, collector.facts)];
    await addRows(this.#context, companyId, passed, logged);
  }

  /** Flushes. Two of three flushes are killed at one of their first 14 calls, before or after this call has taken effect. */
  async #flush(a: number, b: number): Promise<void> {
    const at = a % 3 === 0 ? Number.POSITIVE_INFINITY : 1 + (a % 14);
    const { table } = tableKilledAt(at, b % 2 !== 0, this.#context.table);
    const options = { least: 1, settleMs: 0, sumAfter: b % 4 };
    await flush({ ...this.#context, table }, this.#owner.companyId, options).catch(unlessKilled);
  }

  async #expectReport({ a, b }: Step, isAll: boolean): Promise<void> {
    const caller = b % 3 === 2 ? this.#rep : this.#owner;
    const groupBy = groupings[a % 4] ?? "user";
    const timezone = zoneNames[b % 3] ?? "UTC";
    const ago = (hours: number) => this.#clock.ms - hours * HOUR_MS;
    const [first, last] = [ago(isAll ? 4_000 : a), ago(isAll ? 0 : b % 60)];
    const day = (ms: number) => new Date(ms + zones[timezone] * HOUR_MS).toISOString().slice(0, 10);
    const isByDay = a % 2 === 0;
    const [from, to] = isByDay
      ? [day(first), day(last)]
      : [new Date(first).toISOString(), new Date(last).toISOString()];
    const query: ActivityQuery = { from, to, groupBy, timezone };
    const report = await activityReport(this.#context, caller, query);
    const within = this.#done.filter(({ at, userId }) => {
      const isIn = isByDay ? day(at) >= from && day(at) <= to : at >= first && at <= last;
      return isIn && (caller === this.#owner || userId === caller.userId);
    });
    expect(report.countedSince).toBeNull();
    expect(report.totals).toEqual(countsOf(within));
    const groups = report.items.map(({ user, status, territory, day, ...counts }) => {
      return [user?.id ?? status?.id ?? territory?.id ?? day ?? null, counts] as const;
    });
    expect(new Map(groups)).toEqual(this.#expected(within, groupBy, day, caller));
  }

  #expected(done: readonly Done[], groupBy: ActivityQuery["groupBy"], day: (ms: number) => string, caller: Caller) {
    const keysOf = ({ userId, statusId, at, prospectId }: Done): (string | number | null)[] => {
      if (groupBy === "user") return [userId];
      if (groupBy === "status") return [statusId];
      if (groupBy === "day") return [day(at)];
      const lng = this.#live.get(prospectId)?.lng;
      const isSeen =
        caller === this.#owner ||
        this.#done.some(
          (one) => one.kind === "creations" && one.prospectId === prospectId && one.userId === caller.userId,
        );
      const inside = bands.flatMap(([west, east], i) =>
        isSeen && lng !== undefined && lng >= west && lng <= east ? [this.#territoryIds[i] ?? 0] : [],
      );
      return inside.length === 0 ? [null] : inside;
    };
    const groups = new Map<string | number | null, Done[]>();
    for (const one of done) for (const key of keysOf(one)) groups.set(key, [...(groups.get(key) ?? []), one]);
    return new Map([...groups].map(([key, own]) => [key, countsOf(own)]));
  }
}

function countsOf(done: readonly Done[]) {
  const of = (kind: Kind): number => done.filter((one) => one.kind === kind).length;
  const [statusChanges, notes] = [of("statusChanges"), of("notes")];
  return { statusChanges, notes, appointments: of("appointments"), creations: of("creations") };
}
