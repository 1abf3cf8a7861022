/** Converts prospects and notes to the form that the company's search index stores. */

import { caseless, folded } from "#shared/caseless.ts";
import type { IndexEntry, IndexRow, NoteText } from "#shared/company-index/record.ts";
import type { Address } from "#shared/prospects/address.ts";
import type { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";

const addressParts = ["address1", "address2", "city", "state", "zip"] as const;

/** The lines are those that the formatted address does not contain. */
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
    sourceId: prospect.sourceId,
    appointments: prospect.agendaUntil === undefined ? 0 : prospect.appointments,
    text: lines([...[orEmpty(name), ...phones, orEmpty(prospect.emailAddress)].map(caseless), ...addressLines]),
    phoneDigits: lines(phones.map(digitsOf)),
  };
}

export const indexEntry = (prospect: StoredProspect): IndexEntry =>
  prospect.deletedAt === undefined ? indexRow(prospect) : { id: prospect.id, version: prospect.version, deleted: true };

export const indexNote = ({ id: noteId, prospectId, version, body }: StoredNote): NoteText => ({
  prospectId,
  noteId,
  version,
  text: caseless(body),
});

/** A search word contains no line break, so it cannot match across two texts. */
const lines = (texts: readonly string[]): string => texts.filter((text) => text !== "").join("\n");

const orEmpty = (value: string | null): string => value ?? "";

export const digitsOf = (value: string): string => value.replace(/[^0-9]/g, "");
