/** Keys of the chunks of a company's change log. */
import { type Key, padded } from "#shared/db/keys.ts";

const partition = (companyId: number): string => `C#${companyId}#XL`;
const part = (number: number): string => String(number).padStart(3, "0");

/** The chunks (sets of changes that one flush has moved) with versions above `after` and up to `upTo`. */
export const chunks = (companyId: number, after: number, upTo: number) => ({
  pk: partition(companyId),
  from: `C#${padded(after + 1)}`,
  upTo: `C#${padded(upTo)}~`,
});
/** One row of a chunk. Readers use the chunk as soon as the head row of the search index has the version `version`. */
export const chunk = (companyId: number, version: number, number: number): Key => ({
  pk: partition(companyId),
  sk: `C#${padded(version)}#${part(number)}`,
});
