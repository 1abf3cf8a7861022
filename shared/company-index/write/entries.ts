/** Makes the writes of delta entries. */
import type { AppointmentChange, SharedChange } from "#shared/company-index/change-log.ts";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import type { FactFields } from "#shared/company-index/facts.ts";
import { type IndexEntry, isTombstone, marked, type NoteEntry } from "#shared/company-index/record.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";

/** Maximum bytes of text, phone digits and source id inside an entry. Longer texts are in separate rows, because lists read all entries. */
const TEXT_BYTES = 256;
/** The data of an entry that only the change log and activity reports need. */
export interface ProspectDeltaOptions {
  readonly fact?: FactFields | undefined;
  readonly isRestored?: boolean;
  readonly appointment?: WrittenAppointment | undefined;
}

/** If the appointment is deleted, `holders` lists the users who may have a copy. */
export type WrittenAppointment = Pick<AppointmentChange, "id" | "version" | "isDeleted" | "holders">;

/**
 * Returns the writes of an entry. The transaction that writes the prospect's row must contain them, so that the index misses no change. The
 * change log contains the assignee `before` the change, because this user's device may have a copy of the prospect.
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
    before: before === null ? 0 : before,
    ...fact,
    restored: isRestored ? 1 : undefined,
    appointment: appointment && loggedAppointment(appointment),
  };
  if (isTombstone(entry)) return [{ put: common }];
  const { createdAt, updatedAt, statusId, assignedToUserId, tagIds, city, lat, lng, text, phoneDigits } = entry;
  const { appointments, ahead, sourceId } = entry;
  const dated = {
    ...common,
    updated: updatedAt - createdAt || undefined,
    appointments: appointments || undefined,
    ahead: ahead.length > 0 ? JSON.stringify(ahead) : undefined,
  };
  const filters = [createdAt, statusId, assignedToUserId, tagIds, city, lat, lng];
  const source = marked(sourceId);
  const bytes = Buffer.byteLength(text) + phoneDigits.length + Buffer.byteLength(source);
  if (bytes <= TEXT_BYTES) {
    return [{ put: { ...dated, row: JSON.stringify([...filters, text, phoneDigits]), source } }];
  }
  return [
    { put: { ...dated, row: JSON.stringify([...filters, "", ""]), aside: bytes } },
    { put: { ...keys.deltaText(companyId, common.sk), type: "deltaText", text, phoneDigits, source } },
  ];
}

const loggedAppointment = ({ id, version, isDeleted, holders }: WrittenAppointment) => ({
  ...{ id, version, isDeleted, holders },
});

export interface NoteDeltaOptions {
  /** Who has added the note, and when. Undefined if an existing note was changed. */
  readonly fact?: FactFields | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt?: number;
  /** The assignee of the note's prospect, or null. Set it only if the transaction checks the assignee with a condition. */
  readonly assignee?: number | null | undefined;
  /** The users whose devices may have a copy of the deleted note. Undefined if they are not known. */
  readonly holders?: readonly number[] | undefined;
}

/** Returns the writes of an entry. The transaction that writes the note must contain them, so that the index misses no change. */
export function noteDelta(
  companyId: number,
  { prospectId, noteId, version, text }: NoteEntry,
  { fact = {}, createdAt, assignee, holders }: NoteDeltaOptions = {},
): Write[] {
  const key = keys.noteDelta(companyId, prospectId, noteId, version);
  const common = {
    ...key,
    type: DELTA_TYPE,
    ...fact,
    createdAt,
    assignee: assignee === null ? 0 : assignee,
    holders,
  };
  if (text === null) return [{ put: common }];
  const bytes = Buffer.byteLength(text);
  if (bytes <= TEXT_BYTES) return [{ put: { ...common, note: text } }];
  return [
    { put: { ...common, note: "", aside: bytes } },
    { put: { ...keys.deltaText(companyId, key.sk), type: "deltaText", text } },
  ];
}

/** An entry that is only for the change log. Its key has the record's id in place of a prospect's id. No prospect has the same id. */
export const sharedDelta = (companyId: number, change: SharedChange): Write => ({
  put: { ...keys.prospectDelta(companyId, change.id, change.version), type: DELTA_TYPE, shared: change },
});
