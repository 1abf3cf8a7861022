/**
 * The writes of the entries of a company's search index. Each write of a prospect or note adds an entry, which never changes. Changes of
 * territories, statuses, tags and users also add entries, but only for the change log.
 */
import type { AppointmentChange, SharedChange } from "#shared/company-index/change-log.ts";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import type { FactFields } from "#shared/company-index/facts.ts";
import { type IndexEntry, isTombstone, type NoteEntry } from "#shared/company-index/record.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";

/**
 * Maximum bytes of a text (including phone digits) inside an entry. Every list request reads all entries, so a longer text is in a separate
 * row, which only searches read.
 */
const TEXT_BYTES = 256;
/** Data about the change of a prospect that only the change log and activity reports need. */
export interface ProspectDeltaOptions {
  readonly fact?: FactFields | undefined;
  /** True if the change restores a deleted prospect. */
  readonly isRestored?: boolean;
  /** The appointment that the same transaction writes. */
  readonly appointment?: WrittenAppointment | undefined;
}

/** An appointment that the transaction of a prospect's change writes. If it is deleted, `heldBy` lists the users who may have a copy. */
export type WrittenAppointment = Pick<AppointmentChange, "id" | "version" | "isDeleted" | "heldBy">;

/**
 * Returns the writes of the entry of a changed prospect. Add them to the transaction that writes the prospect's row, so that the index
 * misses no change. `before` is the assignee before the change. The change log records it, because this user's device may have a copy of
 * the prospect.
 */
export function prospectDelta(
  companyId: number,
  entry: IndexEntry,
  before: number | null,
  { fact = {}, isRestored = false, appointment }: ProspectDeltaOptions = {},
): Write[] {
  const common = {
    ...keys.prospectDelta(companyId, entry.id, entry.version),
    type: DELTA_TYPE,
    before: before ?? 0,
    ...filled(fact),
    ...(isRestored && { restored: 1 }),
    ...(appointment !== undefined && { appointment: loggedAppointment(appointment) }),
  };
  if (isTombstone(entry)) return [{ put: common }];
  const { createdAt, updatedAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits } = entry;
  const dated = { ...common, ...(updatedAt !== createdAt && { updated: updatedAt - createdAt }) };
  const filters = [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng];
  const bytes = Buffer.byteLength(text) + phoneDigits.length;
  if (bytes <= TEXT_BYTES) {
    return [{ put: { ...dated, row: JSON.stringify([...filters, text, phoneDigits]) } }];
  }
  return [
    { put: { ...dated, row: JSON.stringify([...filters, "", ""]), aside: bytes } },
    { put: { ...keys.deltaText(companyId, common.sk), type: "deltaText", text, phoneDigits } },
  ];
}

const loggedAppointment = ({ id, version, isDeleted, heldBy }: WrittenAppointment) => ({
  ...{ id, version, isDeleted },
  ...(heldBy !== undefined && { heldBy }),
});

/** Omits fields without a value, because DynamoDB does not store undefined. */
const filled = ({ by, at, past }: FactFields): FactFields => ({
  ...(by !== undefined && { by }),
  ...(at !== undefined && { at }),
  ...(past !== undefined && { past }),
});

/** Data about the change of a note that only the change log and activity reports need. */
export interface NoteDeltaOptions {
  /** Who has added the note, and when. Undefined if an existing note was changed. */
  readonly fact?: FactFields | undefined;
  /** The creation time of the note, in milliseconds since 1970. */
  readonly createdAt?: number;
  /**
   * The assignee of the note's prospect, or null if it has none. Set it only if a condition in the transaction ensures that the prospect
   * has this assignee.
   */
  readonly assignee?: number | null | undefined;
  /** If the note is deleted, the users whose devices may have a copy. Undefined if they are not known. */
  readonly heldBy?: readonly number[] | undefined;
}

/**
 * Returns the writes of the entry of a changed note. Add them to the transaction that writes the note, so that the index misses no change.
 */
export function noteDelta(
  companyId: number,
  { prospectId, noteId, version, text }: NoteEntry,
  { fact = {}, createdAt, assignee, heldBy }: NoteDeltaOptions = {},
): Write[] {
  const key = keys.noteDelta(companyId, prospectId, noteId, version);
  const common = {
    ...key,
    type: DELTA_TYPE,
    ...filled(fact),
    ...(createdAt !== undefined && { createdAt }),
    ...(assignee !== undefined && { assignee: assignee ?? 0 }),
    ...(heldBy !== undefined && { heldBy }),
  };
  if (text === null) return [{ put: common }];
  const bytes = Buffer.byteLength(text);
  if (bytes <= TEXT_BYTES) return [{ put: { ...common, note: text } }];
  return [
    { put: { ...common, note: "", aside: bytes } },
    { put: { ...keys.deltaText(companyId, key.sk), type: "deltaText", text } },
  ];
}

/**
 * Returns the entry of a changed territory, status, tag or user. Only the change log uses it, and a flush does not put it into the index.
 * The id of the record takes the place of a prospect's id in the key. No prospect has the same id.
 */
export const sharedDelta = (companyId: number, change: SharedChange): Write => ({
  put: { ...keys.prospectDelta(companyId, change.id, change.version), type: DELTA_TYPE, shared: change },
});
