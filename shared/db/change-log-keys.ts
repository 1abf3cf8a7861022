/** Keys of a company's change log: its chunks, and the copies of records that belong to them. */
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
/**
 * The copies of prospects that belong to chunks with versions above `after` and up to `upTo`. There may be copies without a chunk, because
 * a flush stores them before its chunk and may then fail.
 */
export const copies = (companyId: number, after: number, upTo: number) => ({
  pk: partition(companyId),
  from: `K#${padded(after + 1)}`,
  upTo: `K#${padded(upTo)}~`,
});
/**
 * One row with copies of the prospects whose changes are in the chunk `version`. `id` is random, because two flushes may try to write the
 * same chunk.
 */
export const copiesOfChunk = (companyId: number, version: number, id: string, number: number): Key => ({
  pk: partition(companyId),
  sk: `K#${padded(version)}#${id}#${part(number)}`,
});
