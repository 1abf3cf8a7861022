/** Makes the items of a page from stored rows. */
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

/** What all items of a page have in common. */
export interface Making {
  readonly context: ChangesContext;
  readonly caller: Caller;
  /** Milliseconds since 1970. Never earlier than the time of an earlier page. */
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

/** Returns why the caller may not see the prospect. Undefined if the caller sees it. */
export function hiddenBecause(caller: Caller, prospect: StoredProspect): Reason | undefined {
  if (isVisible(caller, prospect)) return undefined;
  return isInScope(caller, prospect) ? "deleted" : "hidden";
}

/** An item that changes at this time (in milliseconds since 1970) without a write. */
export interface TimedItem {
  readonly item: ChangeItem;
  readonly changesAt?: number;
}

export async function prospectItem(
  { context, caller, nowMs }: Making,
  row: StoredProspect,
  names: Dictionary,
): Promise<TimedItem> {
  const reason = hiddenBecause(caller, row);
  const { table } = context;
  const [next, begun] = await Promise.all([nextAppointment(table, row, nowMs), begunAppointments(table, row, nowMs)]);
  const version = shownVersion(row.version, names.version + begun);
  if (reason !== undefined) return { item: removal("prospects", row.id, version, reason) };
  const item = upsert("prospects", row.id, version, checked(Prospect, presentProspect(row, next, names)));
  return next === undefined ? { item } : { item, changesAt: begunAt(next) };
}

/** The first time at which the appointment is not the next one any more. */
export const begunAt = ({ startAt }: StoredAppointment): number => Date.parse(startAt) + 1;

/** Version of a note or appointment. It grows when its prospect changes hands, because the record may then come back into sight. */
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

/** The time at which a user's invitation expires. The user is then shown differently, without a write. */
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

/** The items of a page, limited in number and bytes. At least one item fits. */
export class PageItems {
  readonly items: ChangeItem[] = [];
  /** No item of the page changes before this time without a write. */
  quietUntil = Number.POSITIVE_INFINITY;
  readonly #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get room(): number {
    return this.#bytes >= limits.changesBytes ? 0 : this.#limit - this.items.length;
  }

  /** Returns false if the item does not fit. */
  add({ item, changesAt = Number.POSITIVE_INFINITY }: TimedItem): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(item));
    if (this.items.length > 0 && (this.items.length >= this.#limit || this.#bytes + bytes > limits.changesBytes)) {
      return false;
    }
    this.#bytes += bytes;
    this.items.push(item);
    this.quietUntil = Math.min(this.quietUntil, changesAt);
    return true;
  }
}
