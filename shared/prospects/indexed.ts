/** Converts prospects and notes to the form that the company index stores. */
import { folded, searchable } from "#shared/caseless.ts";
import type { IndexEntry, IndexRow, NoteText } from "#shared/company-index/record.ts";
import * as limits from "#shared/limits.ts";
import type { Address } from "#shared/prospects/address.ts";
import { aheadOf, type StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";

const addressParts = ["address1", "address2", "city", "state", "zip"] as const;

/** Returns the formatted address, and the other fields of the address whose text is not a part of it. */
function addressTexts(address: Address): string[] {
  const whole = form(address.formattedAddress, limits.formattedAddress);
  const parts = addressParts.map((part) => form(address[part], limits.addressLine));
  return [whole, ...parts.filter((part) => !whole.includes(part))];
}

export function indexRow(prospect: StoredProspect): IndexRow {
  const { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, name, address } = prospect;
  const phones = [prospect.phoneNumber, prospect.secondaryPhoneNumber].map((phone) => form(phone, limits.phone));
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
    sourceId: prospect.sourceId,
    appointments: prospect.appointments ?? 0,
    ahead: aheadOf(prospect),
    text: lines([form(name, limits.name), ...phones, form(prospect.emailAddress, limits.email), ...addressLines]),
    phoneDigits: lines(phones.flatMap((phone) => wholeNumber(digitsOf(phone)) ?? [])),
  };
}

export const indexEntry = (prospect: StoredProspect): IndexEntry =>
  prospect.deletedAt === undefined ? indexRow(prospect) : { id: prospect.id, version: prospect.version, deleted: true };

export const indexNote = ({ id: noteId, prospectId, version, body }: StoredNote): NoteText => ({
  prospectId,
  noteId,
  version,
  text: searchable(body, limits.note),
});

/** Joins texts by line breaks. A search word has no line break, so it cannot match across two texts. */
const lines = (texts: readonly string[]): string => texts.filter((text) => text !== "").join("\n");

const form = (value: string | null, limit: number): string => searchable(value ?? "", limit);

/** Puts `=` at both ends of a number, so that a search can look for a part of the number, or, with `=`, for the whole number. */
export const wholeNumber = (digits: string): string | undefined => (digits === "" ? undefined : `=${digits}=`);

export const digitsOf = (value: string): string => value.replace(/[^0-9]/g, "");
