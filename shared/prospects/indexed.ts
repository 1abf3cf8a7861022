/** Converts prospects and notes to the form that the company's search index stores. */

import { caseless, folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import type { CopiedAppointment, CopiedNote } from "#shared/company-index/copies/attached.ts";
import type { CopiedFields, ProspectCopy } from "#shared/company-index/copies/prospect.ts";
import type { IndexEntry, IndexRow, NoteText } from "#shared/company-index/record.ts";
import { type Address, formatted } from "#shared/prospects/address.ts";
import type { StoredAppointment, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";

const addressParts = ["address1", "address2", "city", "state", "zip"] as const;

/** Returns the formatted address, and each line of the address that the formatted address does not contain. */
function addressTexts(address: Address): string[] {
  const whole = caseless(orEmpty(address.formattedAddress));
  const parts = addressParts.map((part) => caseless(orEmpty(address[part])));
  return [whole, ...parts.filter((part) => !whole.includes(part))];
}

export function indexRow(prospect: StoredProspect): IndexRow {
  const { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, name, address } = prospect;
  const phones = [prospect.phoneNumber, prospect.secondaryPhoneNumber].map(orEmpty);
  const addressLines = address === null ? [] : addressTexts(address);
  return {
    id,
    version,
    createdAt: Date.parse(createdAt),
    updatedAt: Date.parse(updatedAt),
    statusId,
    assignedToUserId,
    tagIds,
    city: address === null ? null : folded(address.city),
    lat,
    lng,
    text: lines([...[orEmpty(name), ...phones, orEmpty(prospect.emailAddress)].map(caseless), ...addressLines]),
    phoneDigits: lines(phones.map(digitsOf)),
  };
}

export const indexEntry = (prospect: StoredProspect): IndexEntry =>
  prospect.deletedAt === undefined ? indexRow(prospect) : { id: prospect.id, version: prospect.version, deleted: true };

/**
 * Returns the fields of the prospect that lists show and the index row does not contain. Returns undefined if the row of the prospect does
 * not contain all its upcoming appointments: lists show the next one, and a copy could not say which one is next later. Also returns
 * undefined if a time of an appointment has an unusual form.
 */
export function copiedFields(prospect: StoredProspect): CopiedFields | undefined {
  const { moreUpcomingUntil, address } = prospect;
  const upcoming = prospect.upcoming.flatMap((appointment) => copiedAppointment(appointment) ?? []);
  if (upcoming.length < prospect.upcoming.length || moreUpcomingUntil !== null) return undefined;
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress, clientRecordId } = prospect;
  const { source, sourceId, sourceCreatedAt, customFieldData } = prospect;
  const contact = { name, phoneNumber, secondaryPhoneNumber, emailAddress, address: address && copied(address) };
  return { ...contact, source, sourceId, sourceCreatedAt, customFieldData, clientRecordId, upcoming };
}

export const copiedNote = ({ body, createdBy, updatedAt, occurredAt }: StoredNote): CopiedNote => ({
  ...{ body, createdBy, updatedAt: Date.parse(updatedAt) },
  ...(occurredAt !== undefined && { occurredAt: Date.parse(occurredAt) }),
});

/** Returns the note of a copy. `key` contains the fields that the change log contains. */
export const noteOfCopy = (
  { body, createdBy, updatedAt, occurredAt }: CopiedNote,
  key: Pick<StoredNote, "id" | "version" | "companyId" | "prospectId" | "createdAt">,
): StoredNote => ({
  ...{ type: "note", ...key, body, createdBy, updatedAt: iso(updatedAt) },
  ...(occurredAt !== undefined && { occurredAt: iso(occurredAt) }),
});

/** Returns undefined if a time of the appointment does not have the usual form, which a copy could not reproduce. */
export function copiedAppointment(appointment: StoredAppointment): CopiedAppointment | undefined {
  const { startAt, endAt, createdAt, updatedAt, occurredAt } = appointment;
  const times = [startAt, endAt ?? startAt, createdAt, updatedAt, occurredAt ?? startAt];
  if (times.some((time) => iso(Date.parse(time)) !== time)) return undefined;
  const { id, version, title, allDay, status, location, notes, assignedToUserId, createdBy } = appointment;
  return {
    ...{ id, version, title, allDay, status, location, notes, assignedToUserId, createdBy },
    startAt: Date.parse(startAt),
    endAt: endAt === null ? null : Date.parse(endAt),
    createdAt: Date.parse(createdAt),
    updatedAt: Date.parse(updatedAt),
    ...(occurredAt !== undefined && { occurredAt: Date.parse(occurredAt) }),
  };
}

/** Returns the appointment of a copy. `key` contains the fields that the change log contains. */
export const appointmentOfCopy = (
  { startAt, endAt, createdAt, updatedAt, occurredAt, ...fields }: CopiedAppointment,
  key: Pick<StoredAppointment, "companyId" | "prospectId">,
): StoredAppointment => ({
  ...{ type: "appointment", ...key, ...fields },
  ...{ startAt: iso(startAt), endAt: endAt === null ? null : iso(endAt) },
  ...{ createdAt: iso(createdAt), updatedAt: iso(updatedAt) },
  ...(occurredAt !== undefined && { occurredAt: iso(occurredAt) }),
});

const copied = (address: Address) => ({
  ...address,
  formattedAddress: address.formattedAddress === formatted(address) ? undefined : address.formattedAddress,
});

/** The fields of a prospect that lists show, without its appointment. */
export type ShownFields = Pick<
  StoredProspect,
  | keyof Omit<CopiedFields, "clientRecordId" | "upcoming">
  | "id"
  | "lat"
  | "lng"
  | "createdAt"
  | "updatedAt"
  | "statusId"
  | "assignedToUserId"
  | "tagIds"
  | "clientRecordId"
>;

/** Returns the fields of the prospect that lists show, and its upcoming appointments. */
export function shownFields(
  companyId: number,
  { createdAt, updatedAt, changedAt: _, address, tagIds, upcoming, ...fields }: ProspectCopy,
): ShownFields & Pick<StoredProspect, "upcoming"> {
  const { formattedAddress = address && formatted(address) } = address ?? {};
  const key = { companyId, prospectId: fields.id };
  return {
    ...fields,
    upcoming: upcoming.map((appointment) => appointmentOfCopy(appointment, key)),
    tagIds: [...tagIds],
    address: address && { ...address, formattedAddress },
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
  };
}

export const indexNote = ({ id: noteId, prospectId, version, body }: StoredNote): NoteText => ({
  prospectId,
  noteId,
  version,
  text: caseless(body),
});

/** Joins the texts, one on each line. A search word contains no line break, so it cannot match across two texts. */
const lines = (texts: readonly string[]): string => texts.filter((text) => text !== "").join("\n");

const orEmpty = (value: string | null): string => value ?? "";

export const digitsOf = (value: string): string => value.replace(/[^0-9]/g, "");
