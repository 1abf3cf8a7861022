/** Compression of the index's items, with a checksum: damaged bytes are an error and never another content. */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";

/** Higher levels gain next to nothing on columns and cost a multiple of the time. */
const LEVEL = 9;

/** Decompressed at a time: with the 16 KB that are usual, a segment's texts take half as long again. */
const CHUNK_BYTES = 128 * 1024;

/** The index cannot be read: a part of it is missing or damaged. The rows of the prospects are not affected. */
export class IndexUnreadable extends Error {
  override name = "IndexUnreadable";
}

export const compress = (bytes: Uint8Array): Uint8Array =>
  zstdCompressSync(bytes, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 },
  });

/** What `read` makes of the bytes. Throws IndexUnreadable where they are damaged; `label` says which they are. */
export function decompress<T>(label: string, compressed: Uint8Array, read: (bytes: Uint8Array) => T): T {
  try {
    return read(zstdDecompressSync(compressed, { chunkSize: CHUNK_BYTES }));
  } catch (error) {
    throw new IndexUnreadable(`${label} is damaged`, { cause: error });
  }
}
