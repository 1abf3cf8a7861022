/** Makes the items of a page of `GET /api/changes` from stored rows. */
import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { ApiContext } from "#shared/context.ts";
import { checked } from "#shared/http/chain.ts";
import * as limits from "#shared/limits.ts";
import { begunAppointments, nextAppointment } from "#shared/prospects/agenda.ts";
import { presentAppointment, presentNote, presentProspect } from "#shared/prospects/present.ts";
import { isInScope, isVisible } from "#shared/prospects/read.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import type { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
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
  /** Milliseconds since 1970, never before the time of an earlier page of the same client. */
  readonly nowMs: number;
}

const upsert = (type: ChangeType, id: number, version: number, data: object): ChangeItem => ({
  ...{ type, id, version, op: "upsert" },
  data: { ...data },
});

export type Reason = "deleted" | "hidden";

export const removal = (type: ChangeType, id: number, version: number, reason: Reason): ChangeItem => ({
  ...{ type, id, version, op: "remove", reason },
});

/** Undefined if the caller sees the prospect. */
export function hiddenBecause(caller: Caller, prospect: StoredProspect): Reason | undefined {
  if (isVisible(caller, prospect)) return undefined;
  return isInScope(caller, prospect) ? "deleted" : "hidden";
}

/**
 * `changesAt` is the time at which the record changes without a write, in milliseconds since 1970. It is absent if there is no such time.
 */
export interface TimedItem {
  readonly item: ChangeItem;
  readonly changesAt?: number;
}

export async function prospectItem(
  { context: { table }, caller, nowMs }: Making,
  prospect: StoredProspect,
  names: Dictionary,
): Promise<TimedItem> {
  const [next, begun] = await Promise.all([
    nextAppointment(table, prospect, nowMs),
    begunAppointments(table, prospect, nowMs),
  ]);
  const version = shownVersion(prospect.version, names.version + begun);
  const reason = hiddenBecause(caller, prospect);
  if (reason !== undefined) return { item: removal("prospects", prospect.id, version, reason) };
  const item = upsert("prospects", prospect.id, version, checked(Prospect, presentProspect(prospect, next, names)));
  return next === undefined ? { item } : { item, changesAt: begunAt(next) };
}

/** From the result on, the prospect shows its next appointment instead. */
export const begunAt = ({ startAt }: StoredAppointment): number => Date.parse(startAt) + 1;

/**
 * The version of a note or appointment also grows with the version of its prospect and of the dictionary. For example, a prospect is
 * assigned to another user and later back. The client gets the removal of a note and later the note again, which must have a higher version
 * than its removal.
 */
export const attachedVersion = (row: { readonly version: number }, prospectVersion: number, names: Dictionary) =>
  shownVersion(row.version, prospectVersion + names.version);

export const noteItem = (row: StoredNote, prospectVersion: number, names: Dictionary): TimedItem => {
  const data = checked(Note, presentNote(row, names));
  return { item: upsert("notes", row.id, attachedVersion(row, prospectVersion, names), data) };
};

export const appointmentItem = (row: StoredAppointment, prospectVersion: number, names: Dictionary): TimedItem => {
  const data = checked(Appointment, presentAppointment(row, names));
  return { item: upsert("appointments", row.id, attachedVersion(row, prospectVersion, names), data) };
};

export const territoryItem = (row: StoredTerritory): TimedItem => ({
  item: upsert("territories", row.id, shownVersion(row.version), checked(Territory, presentTerritory(row))),
});

export const statusItem = (row: StoredStatus): TimedItem => ({
  item: upsert("statuses", row.id, shownVersion(row.version), checked(Status, row)),
});

export const tagItem = (row: StoredTag): TimedItem => ({
  item: upsert("tags", row.id, shownVersion(row.version), checked(Tag, row)),
});

/** From the result on, the user is shown with an expired invitation. Undefined if the invitation cannot expire. */
export const expiresAt = ({ invitedUntil, isWithdrawn }: StoredUser): number | undefined =>
  isWithdrawn === true ? undefined : invitedUntil;

export function userItem(row: StoredUser, nowMs: number): TimedItem {
  const changesAt = expiresAt(row);
  const isExpired = changesAt !== undefined && changesAt <= nowMs;
  const item = upsert(
    "users",
    row.id,
    shownVersion(row.version, isExpired ? 1 : 0),
    checked(User, presentUser(row, nowMs)),
  );
  return changesAt === undefined || isExpired ? { item } : { item, changesAt };
}

/** Rows that do not fit into the page are read in vain, so the number is the default limit of a page. */
export const PROSPECTS_AT_ONCE = limits.changesDefault;

/** Maximum bytes of a page without its items: the cursor and the names of the fields. */
const ENVELOPE_BYTES = 1_024;

/** The first item is always accepted. */
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
