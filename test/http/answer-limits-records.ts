/** Records of the maximum documented size. Their values need as many bytes as possible in an answer. */
import { randomUUID } from "node:crypto";
import { Scope } from "#shared/auth/scopes.ts";
import * as limits from "#shared/limits.ts";

/**
 * The character that makes answers largest. It needs six bytes in JSON (`\u0001`). Lambda puts the answer into a JSON string, where the
 * backslash is escaped again, so it needs seven bytes there.
 */
const WIDE = "\u0001";
export const wide = (characters: number, beginning = ""): string =>
  beginning + WIDE.repeat(characters - beginning.length);

/** Number of records in a long list. An answer with them exceeds Lambda's limit for buffered answers, so the service must stream it. */
export const STREAMED = 110;

/** Number of imports, and number of deliveries, so that a page of each list is full. */
export const SUMMARIES = limits.pageSizeMax;

export const text = (max: number): string => wide(max);
export const address = {
  address1: text(limits.addressLine),
  address2: text(limits.addressLine),
  city: text(limits.addressLine),
  state: text(limits.addressLine),
  zip: text(limits.addressLine),
};
export const appointment = {
  title: text(limits.appointmentTitle),
  location: text(limits.appointmentLocation),
  notes: text(limits.appointmentNotes),
  // The appointment is in the past, because a prospect's row contains copies of its future appointments and would become too large.
  startAt: "2020-01-01T00:00:00.000Z",
};
const polygon = Array.from({ length: limits.polygonPointsMax }, (_, i) => [-104 - i / 7e15, 39 + i / 9e15]);
/** A name must have a visible character. `WIDE` is invisible, so the name begins with another character. */
export const name = wide(limits.name, "n");
export const account = { name, role: "admin" };
export const key = { name, scopes: Scope.options };
export const territory = { name, polygon };
export const prospect = {
  name,
  phoneNumber: text(limits.phone),
  secondaryPhoneNumber: text(limits.phone),
  emailAddress: `a@${"b.".repeat(120)}test`,
  lat: -39.123456789,
  lng: -104.123456789,
  source: text(limits.source),
  sourceId: text(limits.sourceId),
  // The limit counts the bytes of the field's JSON, where a quotation mark needs two bytes and `WIDE` six. Lambda escapes this JSON again.
  // A quotation mark then needs four bytes and `WIDE` seven, so quotation marks make the answer longest.
  customFieldData: { k: '"'.repeat((limits.customFieldBytes - 8) / 2) },
};
/**
 * The filter of a webhook registration. It matches the test's prospect, whose actions therefore include the button of the registration.
 * Quotation marks make the answer longest, as in `customFieldData`.
 */
export const filter = (() => {
  const match = { "prospect.source": ["", prospect.source] };
  const room = limits.filterBytes - Buffer.byteLength(JSON.stringify(match));
  return { "prospect.source": ['"'.repeat(Math.floor(room / 2)), prospect.source] };
})();
export const registration = {
  event: text(limits.eventName),
  filter,
  triggerMode: "manual",
  manualTriggerButtonText: text(limits.buttonText),
};
export const webhook = (count: number) => ({
  name,
  url: `http://127.0.0.1:9/${"x".repeat(limits.url - 19)}`,
  secretKey: randomUUID().repeat(7),
  registrations: Array.from({ length: count }, () => registration),
});
/** A CSV file with the maximum number of rows. Each row has as many columns with errors as the maximum file size allows. */
export const badFile = (() => {
  const tags = Array.from({ length: limits.tagsPerProspect }, (_, i) => `${i},`).join(";");
  const row = `${"x".repeat(51)},@,x,x,?,?,"${tags.slice(0, 60)}"`;
  return `phone,email,lat,lng,status,assignedTo,tags\n${`${row}\n`.repeat(limits.importRows)}`;
})();

export const OPERATIONS = 20;
export const newNote = (prospectId: number) => ({
  opId: randomUUID(),
  type: "note.create",
  id: prospectId,
  fields: { body: text(limits.note / 2) },
});
