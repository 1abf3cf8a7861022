/** Reads many records in stages, each with records of one type. A page may end after any record, and the next page continues there. */
import { visibleAssignee } from "#shared/auth/caller.ts";
import type { Criteria } from "#shared/company-index/criteria.ts";
import type { Found } from "#shared/company-index/read/company-index.ts";
import { type LiveNotes, liveNotes, versionsOf } from "#shared/company-index/search/live-notes.ts";
import { appointmentsOf } from "#shared/company-index/search/match.ts";
import { matchesAfter } from "#shared/company-index/search/page.ts";
import type { NewestVersions } from "#shared/company-index/versions.ts";
import { criteriaOf, inBoth } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import type { StoredAppointment } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import {
  appointmentMonths,
  appointmentsOfCompany,
  appointmentsOfUser,
  attachedAfter,
  type Months,
  notesOf,
  type Some,
} from "#shared/sync/changes/attached.ts";
import type { Order, Place } from "#shared/sync/changes/cursor.ts";
import {
  type AttachedRow,
  attachedItem,
  type Making,
  type PageItems,
  PROSPECTS_AT_ONCE,
  removal,
  sharedItem,
  shownProspect,
  type TimedItem,
} from "#shared/sync/changes/items.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import { countTerritories, territoriesAfter } from "#shared/territories/territories.ts";

type Where = Pick<Criteria, "statusIds" | "tagIds" | "assigneeIds">;

export interface Stage {
  readonly type: ChangeType;
  readonly where?: Where;
  /** Only prospects with ids from `from` to `to`, or notes of these prospects. */
  readonly range?: { readonly from: number; readonly to: number };
  /** Only notes and appointments that this user has created or is assigned to, or prospects with such an appointment. */
  readonly showing?: number;
  /** Only the status, tag or user with this id. */
  readonly only?: { readonly id: number; readonly version: number; readonly isDeleted: boolean };
}

/** The reads that the stages of one page share. The company index is read at most once for each different `where`. */
export class StageReads {
  readonly making: Making;
  readonly #found = new Map<string, Promise<Found<Dictionary>>>();
  #visible: NewestVersions | undefined;
  #months: Promise<Months> | undefined;

  constructor(making: Making) {
    this.making = making;
  }

  found(where: Where = {}): Promise<Found<Dictionary>> {
    const name = JSON.stringify(Object.entries(where).map(([field, ids]) => [field, ...(ids ?? [])]));
    const known = this.#found.get(name);
    if (known !== undefined) return known;
    const { context, caller, types } = this.making;
    const notesOf = types.includes("notes") ? liveNotes : undefined;
    const criteria = (names: Dictionary): Criteria => narrowed(criteriaOf({}, caller, names), where);
    const found = findProspects(context, caller.companyId, criteria, { notesOf });
    this.#found.set(name, found);
    return found;
  }

  async notes(): Promise<LiveNotes> {
    const { notes } = await this.found();
    if (notes === undefined) throw new Error("the page has no notes");
    return notes;
  }

  /** The versions of the prospects that the caller may see. Any other prospect has the version 0. */
  async visible(): Promise<NewestVersions> {
    const { matches } = await this.found();
    this.#visible ??= versionsOf(matches);
    return this.#visible;
  }

  async #monthsOfCompany(): Promise<Months> {
    const { names, head } = await this.found();
    const { context, caller } = this.making;
    const users = [...names.users.keys()];
    const visible = await this.visible();
    this.#months ??= appointmentMonths(context.table, caller.companyId, users, head.version, visible);
    return this.#months;
  }

  appointments(after: Order | undefined, limit: number): Promise<Some<StoredAppointment>> {
    const { context, caller } = this.making;
    const own = visibleAssignee(caller);
    if (own !== undefined) return appointmentsOfUser(context.table, caller.companyId, own, after, limit);
    return appointmentsOfCompany(context.table, caller.companyId, () => this.#monthsOfCompany(), after, limit);
  }

  /** Returns the number of all records that the caller may see. The number of each type is exact at one moment of this request. */
  async count(): Promise<number> {
    const { context, caller, types } = this.making;
    const { names, matches } = await this.found();
    const counts: Record<ChangeType, () => number | Promise<number>> = {
      prospects: () => matches.total,
      notes: async () => (await this.notes()).count(),
      appointments: () => appointmentsOf(matches),
      territories: () => countTerritories(context.table, caller.companyId),
      statuses: () => names.statuses.size,
      tags: () => names.tags.size,
      users: () => names.users.size,
    };
    const all = await Promise.all(types.map((type) => counts[type]()));
    return all.reduce((sum, count) => sum + count, 0);
  }
}

/** An assignee must be in `wanted` and in the criteria, so that users see only prospects that they may see. */
const narrowed = (criteria: Criteria, { assigneeIds: wanted, ...where }: Where): Criteria => ({
  ...criteria,
  ...where,
  ...(wanted !== undefined && { assigneeIds: inBoth(criteria.assigneeIds, wanted) }),
});

/** Maximum number of reads of one page. 1 000 prospects need two reads, and each of the six other types needs one. */
export const MOST_READS = 8;

/**
 * Adds the records of the stages. Returns the place after the last added record, or undefined at the end of the last stage. May stop while
 * the page has room, because a request reads a limited number of rows.
 */
export async function readStages(
  reads: StageReads,
  stages: readonly Stage[],
  from: Place,
  page: PageItems,
): Promise<Place | undefined> {
  let { stage: at, after } = from;
  for (let done = 0; page.room > 0 && done < MOST_READS; done++) {
    const stage = stages[at];
    if (stage === undefined) break;
    const { entries, hasMore } = await readers[stage.type](reads, stage, after, page.room);
    for (const { item, order } of entries) {
      if (item !== undefined && !page.add(item)) return { stage: at, after };
      after = order;
    }
    if (hasMore) {
      const showsMost = stage.type === "prospects" && stage.showing === undefined;
      if (!showsMost) break;
    } else [at, after] = [at + 1, undefined];
  }
  return at < stages.length ? { stage: at, after } : undefined;
}

interface Part {
  /** The item is undefined for a record that was read, but does not belong to the stage. */
  readonly entries: readonly { readonly order: Order; readonly item: TimedItem | undefined }[];
  readonly hasMore: boolean;
}

type Reader = (reads: StageReads, stage: Stage, after: Order | undefined, limit: number) => Promise<Part>;

/**
 * Reads in the order of ids, so a prospect that the caller may see during the whole snapshot is in exactly one page. Any other prospect has
 * changed since the snapshot began, so the changes after the snapshot contain it.
 */
const readProspects: Reader = async (reads, stage, after, limit) => {
  if (stage.showing !== undefined) return readProspectsShowing(reads, stage, after, limit);
  const { making } = reads;
  const { names, matches } = await reads.found(stage.where);
  const { from, to } = stage.range ?? { from: 1, to: Number.POSITIVE_INFINITY };
  const most = Math.min(limit, PROSPECTS_AT_ONCE);
  const refs = matchesAfter(matches, Math.max(from - 1, after?.[0] ?? 0), to, most);
  const rows = await rowsAtLeast(making.context.table, making.caller.companyId, names.version, { refs });
  const entries = refs.map(async ({ id }) => ({
    order: [id, 0, 0] as const,
    item: await shownProspect(making, rows.get(id), names),
  }));
  return { entries: await Promise.all(entries), hasMore: refs.length === most };
};

const readProspectsShowing: Reader = async (reads, { showing }, after, limit) => {
  const { making } = reads;
  const { names } = await reads.found();
  const { rows: appointments, hasMore } = await reads.appointments(after, limit);
  const ids = new Set(appointments.flatMap(({ row }) => (shows(row, showing) ? row.prospectId : [])));
  const rows = await rowsAtLeast(making.context.table, making.caller.companyId, names.version, { current: ids });
  const entries = appointments.map(async ({ row, order }) => ({
    order,
    item: shows(row, showing) ? await shownProspect(making, rows.get(row.prospectId), names) : undefined,
  }));
  return { entries: await Promise.all(entries), hasMore };
};

const shows = (row: AttachedRow, userId: number | undefined): boolean =>
  userId === undefined || row.createdBy === userId || (row.type === "appointment" && row.assignedToUserId === userId);

const readAppointments: Reader = async (reads, { showing }, after, limit) => {
  const { names } = await reads.found();
  const visible = await reads.visible();
  const { rows, hasMore } = await reads.appointments(after, limit);
  const entries = rows.map(({ row, order }) => {
    const version = visible.versionOf(row.prospectId);
    return { order, item: version > 0 && shows(row, showing) ? attachedItem(row, version, names) : undefined };
  });
  return { entries, hasMore };
};

const NOTES_AT_ONCE = 250;

/** Reads no row for a prospect without notes, because the company index contains the ids of all notes. */
const readNotes: Reader = async (reads, { range, showing }, after, limit) => {
  const { context, caller } = reads.making;
  const { names } = await reads.found();
  const notes = await reads.notes();
  const visible = await reads.visible();
  const begun =
    after !== undefined && after[1] > 0 ? { id: after[0], after: [after[1], after[2], 0] as const } : undefined;
  const most = Math.min(limit, NOTES_AT_ONCE);
  const from = Math.max(range?.from ?? 1, after?.[0] ?? 1);
  const prospects = [...notes.byProspect(from, range?.to ?? Number.POSITIVE_INFINITY, most)];
  let left = most;
  const some = prospects.filter(([, { length }]) => {
    left -= length;
    return left + length > 0;
  });
  const unread = some.filter(([id]) => id !== begun?.id);
  const read = await notesOf(context.table, caller.companyId, unread);
  const entries: Part["entries"][number][] = [];
  for (const [id] of some) {
    const whole = read.get(id);
    const place = id === begun?.id ? begun.after : undefined;
    const { rows, hasMore } =
      whole === undefined
        ? await attachedAfter(context.table, caller.companyId, {
            type: "notes",
            prospectId: id,
            after: place,
            limit: most,
          })
        : { rows: whole, hasMore: false };
    for (const { row, order } of rows) {
      const item = shows(row, showing) ? attachedItem(row, visible.versionOf(id), names) : undefined;
      entries.push({ order: [id, order[0], order[1]], item });
    }
    if (hasMore) return { entries, hasMore };
    // Without this entry, a prospect whose notes fill a page exactly would be selected again for every following page.
    entries.push({ order: [id + 1, 0, 0], item: undefined });
  }
  return { entries, hasMore: some.length < prospects.length || prospects.length >= most };
};

const readTerritories: Reader = async ({ making: { context, caller, nowMs } }, _, after, limit) => {
  const { rows, isEnd } = await territoriesAfter(context.table, caller.companyId, after, limit);
  const entries = rows.map((row) => ({
    order: [Date.parse(row.createdAt), row.id, 0] as const,
    item: sharedItem(row, nowMs),
  }));
  return { entries, hasMore: !isEnd };
};

function named(kind: "statuses" | "tags" | "users"): Reader {
  return async (reads, { only }, after, limit) => {
    if (only?.isDeleted === true) {
      const item = removal(kind, only.id, shownVersion(only.version), "deleted");
      return { entries: [{ order: [only.id, 0, 0], item }], hasMore: false };
    }
    const { names } = await reads.found();
    const rows = [...names[kind].values()]
      .filter(({ id }) => id > (after?.[0] ?? 0) && (only === undefined || id === only.id))
      .sort((a, b) => a.id - b.id);
    const entries = rows.slice(0, limit).map((row) => ({
      order: [row.id, 0, 0] as const,
      item: sharedItem(row, reads.making.nowMs),
    }));
    return { entries, hasMore: rows.length > limit };
  };
}

const readers: Readonly<Record<ChangeType, Reader>> = {
  prospects: readProspects,
  notes: readNotes,
  appointments: readAppointments,
  territories: readTerritories,
  statuses: named("statuses"),
  tags: named("tags"),
  users: named("users"),
};
