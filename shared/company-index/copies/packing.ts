/** Compresses the copies in unflushed entries (recent changes of the search index). */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";

/**
 * Maximum bytes of a copy in an unflushed entry. Every list reads all these entries, so a larger copy would cost lists more than it saves
 * for `GET /api/changes`.
 */
const COPY_BYTES = 160;

/**
 * Maximum bytes of a copy before compression. A long text of equal letters would need few bytes in the entry, but much memory in a flush,
 * which unpacks many copies at once.
 */
const UNPACKED_BYTES = 2_048;

/**
 * Compresses the text. `dictionary` is a text to which the compressed bytes may refer, so a text that repeats parts of it needs few bytes.
 * Returns undefined if the text or the result is too long.
 */
export function pack(text: string, dictionary: string): Uint8Array | undefined {
  if (Buffer.byteLength(text) > UNPACKED_BYTES) return undefined;
  const bytes = deflateRawSync(text, { dictionary: Buffer.from(dictionary), level: 9 });
  return bytes.length <= COPY_BYTES ? bytes : undefined;
}

/** Returns the text that `pack` has compressed with the same dictionary. Throws IndexUnreadable with `label` if the bytes are damaged. */
export function unpack(label: string, bytes: Uint8Array, dictionary: string): string {
  try {
    return inflateRawSync(bytes, { dictionary: Buffer.from(dictionary) }).toString();
  } catch (error) {
    throw new IndexUnreadable(`${label} is damaged`, { cause: error });
  }
}
