/** The headers that an import reads as a column of another name. */
import { folded } from "#shared/caseless.ts";
import type { Column } from "#shared/prospects/csv/format.ts";

export type Field = Column | "firstName" | "lastName";

/**
 * `Owner` is no synonym of `assignedTo`, because it means the owner of the home. Tags and notes have no synonyms: a row must not fail by a
 * synonym, and a new tag or note may exceed a limit.
 */
export const synonyms: readonly (readonly [Field, readonly string[]])[] = [
  ["name", ["Full Name", "Contact Name", "Customer Name", "Lead Name", "Prospect Name"]],
  ["firstName", ["First Name", "Given Name"]],
  ["lastName", ["Last Name", "Family Name", "Surname"]],
  ["phone", ["Phone Number", "Primary Phone", "Main Phone", "Home Phone", "Telephone", "Telephone Number"]],
  ["secondaryPhoneNumber", ["Secondary Phone Number", "Secondary Phone", "Alternate Phone", "Other Phone", "Phone 2"]],
  ["email", ["E-mail", "Email Address", "E-mail Address"]],
  ["lat", ["Latitude"]],
  ["lng", ["Longitude", "Long", "Lon"]],
  ["address1", ["Street", "Street Address", "Address", "Address 1", "Address Line 1"]],
  ["address2", ["Address 2", "Address Line 2", "Apartment", "Apt", "Suite", "Unit"]],
  ["city", ["Town"]],
  ["state", ["Province", "State/Province"]],
  ["zip", ["Zip Code", "Postal Code", "Postcode", "Zip/Postal Code"]],
  ["status", ["Lead Status", "Prospect Status", "Current Status"]],
  ["assignedTo", ["Assigned To", "Assignee", "Sales Rep", "Sales Representative", "Rep"]],
  ["assignedToEmail", ["Assigned To Email", "Assignee Email", "Sales Rep Email", "Rep Email"]],
  ["source", ["Lead Source"]],
  ["sourceId", ["Source ID", "External ID"]],
];

/** These headers mean `secondaryPhoneNumber` in a file that has a column for `phone`, and otherwise `phone`. */
export const mobileHeaders = ["Mobile", "Mobile Phone", "Mobile Number", "Cell", "Cell Phone", "Cell Number"];

/** Headers are compared by their letters and digits, so `zip_code` and `ZipCode` are `Zip Code`. */
const lettersOf = (header: string): string => folded(header).replace(/[^\p{L}\p{N}]/gu, "");

const fields = new Map<string, Field | "mobile">([
  ...synonyms.flatMap(([field, headers]) => headers.map((header) => [lettersOf(header), field] as const)),
  ...mobileHeaders.map((header) => [lettersOf(header), "mobile"] as const),
]);

export const synonymOf = (header: string): Field | "mobile" | undefined => fields.get(lettersOf(header));
