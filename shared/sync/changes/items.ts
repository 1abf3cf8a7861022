/** Makes the items of a page of `GET /api/changes` from stored rows. */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { Change } from "#shared/company-index/change-log.ts";
import type { ApiContext } from "#shared/context.ts";
import { checked } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { holdersOf } from "#shared/prospects/assignments.ts";
import { presentAppointment, presentNote, presentProspect } from "#shared/prospects/present.ts";
import { isInScope, isVisible } from "#shared/prospects/read.ts";
import { lowsOf, prospectLow, shownVersion } from "#shared/prospects/record-version.ts";
import { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import { aheadOf, type ListedRow, type StoredAppointment, type StoredNote } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { Status, type StoredStatus, type StoredTag, Tag } from "#shared/reference/schema.ts";
import { User } from "#shared/reference/user.ts";
import type { ChangeItem, ChangeType } from "#shared/sync/changes/schema.ts";
import { presentTerritory, type StoredTerritory, Territory } from "#shared/territories/territories.ts";

export type ChangesContext = Pick<ApiContext, "table" | "clock" | "secrets">;

export interface Making {
  readonly context: ChangesContext;
  readonly caller: Caller;
  readonly types: readonly ChangeType[];
  /** Milliseconds since 1970, never before the time of an earlier page of the same client. */
  readonly nowMs: number;
}

export interface TimedItem {
  readonly item: ChangeItem;
  /** The time at which the record will change without a write, in milliseconds since 1970. */
  readonly changesAt?: number | undefined;
}

export const typeOf = {
  prospect: "prospects",
  note: "notes",
  appointment: "appointments",
  territory: "territories",
  status: "statuses",
  tag: "tags",
  user: "users",
} as const satisfies Record<Change["kind"], ChangeType>;

interface Row {
  readonly type: Change["kind"];
  readonly id: number;
  readonly version: number;
}

/** `shownVersion` explains `low`. */
const upsert = ({ type, id, version }: Row, data: object, low = 0, changesAt?: number): TimedItem => ({
  item: { type: typeOf[type], id, version: shownVersion(version, low), op: "upsert", data: { ...data } },
  changesAt,
});

type Reason = "deleted" | "hidden";

export const removal = (type: ChangeType, id: number, version: number, reason: Reason): TimedItem => ({
  item: { type, id, version, op: "remove", reason },
});

/** Returns why the caller does not see the prospect. Undefined if the caller sees it. */
export function hiddenBecause(caller: Caller, prospect: ListedRow): Reason | undefined {
  if (isVisible(caller, prospect)) return undefined;
  return isInScope(caller, prospect) ? "deleted" : "hidden";
}

export async function prospectItem(
  { context: { table }, caller, nowMs }: Making,
  prospect: ListedRow,
  names: Dictionary,
): Promise<TimedItem> {
  const next = await nextAppointment(table, prospect, nowMs);
  const low = prospectLow({ ...prospect, ahead: aheadOf(prospect) }, lowsOf(names, nowMs));
  const reason = hiddenBecause(caller, prospect);
  if (reason !== undefined) return removal("prospects", prospect.id, shownVersion(prospect.version, low), reason);
  const data = checked(Prospect, presentProspect(prospect, next, names));
  return upsert(prospect, data, low, next && begunAt(next));
}

/** Undefined if the caller does not see the prospect any more. */
export async function shownProspect(
  making: Making,
  row: ListedRow | undefined,
  names: Dictionary,
): Promise<TimedItem | undefined> {
  const made = row && (await prospectItem(making, row, names));
  return made?.item.op === "upsert" ? made : undefined;
}

/** Returns the time from which the prospect shows its next appointment instead of this one, in milliseconds since 1970. */
export const begunAt = ({ startAt }: StoredAppointment): number => Date.parse(startAt) + 1;

export type AttachedRow = StoredNote | StoredAppointment;

/**
 * The version of a note or appointment also grows with the versions of its prospect and of the dictionary. If a prospect is assigned to
 * another user and later back, a client gets the removal of a note, and then the note again with a higher version.
 */
const attachedLow = (prospectVersion: number, names: Dictionary): number => prospectVersion + names.version;

export function attachedItem(row: AttachedRow, prospectVersion: number, names: Dictionary): TimedItem {
  const data =
    row.type === "note" ? checked(Note, presentNote(row, names)) : checked(Appointment, presentAppointment(row, names));
  return upsert(row, data, attachedLow(prospectVersion, names));
}

/**
 * Returns the note or appointment if the caller sees its prospect. Otherwise returns its removal, or undefined if no device of the caller
 * can have a copy that must be removed (`holdersOf`).
 */
export function movedItem(
  { caller, nowMs }: Making,
  row: AttachedRow,
  prospect: ListedRow,
  names: Dictionary,
): TimedItem | undefined {
  const reason = hiddenBecause(caller, prospect);
  if (reason === undefined) return attachedItem(row, prospect.version, names);
  const own = visibleAssignee(caller);
  if (own !== undefined && holdersOf(prospect, row, nowMs)?.includes(own) === false) return undefined;
  return removal(typeOf[row.type], row.id, shownVersion(row.version, attachedLow(prospect.version, names)), reason);
}

/** Returns the time from which the invitation counts as expired, in milliseconds since 1970. Undefined if it cannot expire. */
export const expiresAt = ({ invitedUntil, isWithdrawn }: StoredUser): number | undefined =>
  isWithdrawn === true ? undefined : invitedUntil;

const isExpired = (row: StoredUser, nowMs: number): boolean => (expiresAt(row) ?? Number.POSITIVE_INFINITY) <= nowMs;

export const userVersion = (row: StoredUser, nowMs: number): number =>
  shownVersion(row.version, isExpired(row, nowMs) ? 1 : 0);

/** Makes the item of a record that every user of the company may see. */
export function sharedItem(row: StoredTerritory | StoredStatus | StoredTag | StoredUser, nowMs: number): TimedItem {
  switch (row.type) {
    case "territory":
      return upsert(row, checked(Territory, presentTerritory(row)));
    case "status":
      return upsert(row, checked(Status, row));
    case "tag":
      return upsert(row, checked(Tag, row));
    case "user": {
      const low = isExpired(row, nowMs) ? 1 : 0;
      return upsert(row, checked(User, presentUser(row, nowMs)), low, low === 1 ? undefined : expiresAt(row));
    }
  }
}

/** Maximum number of prospects read together. Rows that do not fit into the page are read in vain. */
export const PROSPECTS_AT_ONCE = limits.changesDefault;

/** Maximum bytes of a page without its items. */
const ENVELOPE_BYTES = 1_024;

/** The items of a page. The first item is always accepted, even if it has more bytes than a page may have. */
export class PageItems {
  readonly items: ChangeItem[] = [];
  /** Until this time, in milliseconds since 1970, none of the page's records changes without a write. */
  quietUntil = Number.POSITIVE_INFINITY;
  readonly #limit: number;
  #bytes = ENVELOPE_BYTES;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get room(): number {
    return this.#bytes >= limits.changesBytes ? 0 : this.#limit - this.items.length;
  }

  /** Returns false if the item does not fit. */
  add({ item, changesAt = Number.POSITIVE_INFINITY }: TimedItem): boolean {
    // A comma follows each item.
    const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
    if (this.items.length > 0 && (this.items.length >= this.#limit || this.#bytes + bytes > limits.changesBytes)) {
      return false;
    }
    this.#bytes += bytes;
    this.items.push(item);
    this.quietUntil = Math.min(this.quietUntil, changesAt);
    return true;
  }
}
