/**
 * Writes the frame of a gzip file (RFC 1952) whose text is compressed in several parts. Also compresses a streamed answer in such parts.
 */
import { constants, crc32, deflateRawSync } from "node:zlib";

export type Piece = string | Uint8Array;

export const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * Returns the end of a gzip file: an empty last block (RFC 1951) and the trailer. `crc` and `textBytes` are those of the whole
 * uncompressed text.
 */
export function gzipEnd(crc: number, textBytes: number): Buffer {
  const end = Buffer.alloc(10);
  end[0] = 3;
  end.writeUInt32LE(crc, 2);
  end.writeUInt32LE(textBytes % 2 ** 32, 6);
  return end;
}

/**
 * Measurements on a large answer of map pins led to these options. Level 6 would make the body one sixth shorter, but would take three
 * times as long as level 2. A window of 32 KB would take a tenth longer than 16 KB, with the same length of the body. The flush ends each
 * part at a byte boundary, so that the client can show it at once.
 */
const DEFLATE = { level: 2, windowBits: 14, chunkSize: 64 * 1024, finishFlush: constants.Z_SYNC_FLUSH } as const;

/**
 * The first bytes of each answer are compressed at a higher level. Most answers are shorter than this number of bytes. A map view of 1 000
 * pins then becomes a sixth shorter and takes a millisecond longer. This is cheaper, because bytes cost more than processor time
 * (docs/cost.md).
 */
const BEGINNING_BYTES = 256 * 1024;
const BEGINNING_DEFLATE = { ...DEFLATE, level: 6, windowBits: 15 } as const;

/**
 * Compresses each piece before it requests the next piece. The pieces may therefore share memory. Node's gzip stream would compress in a
 * second thread, and would need new memory for the whole text of each answer.
 */
export async function* gzipped(pieces: Iterable<Piece> | AsyncIterable<Piece>): AsyncGenerator<Uint8Array> {
  let crc = 0;
  let textBytes = 0;
  let header = GZIP_HEADER;
  for await (const piece of pieces) {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    if (bytes.length === 0) continue;
    crc = crc32(bytes, crc);
    textBytes += bytes.length;
    const part = deflateRawSync(bytes, textBytes <= BEGINNING_BYTES ? BEGINNING_DEFLATE : DEFLATE);
    yield header.length === 0 ? part : Buffer.concat([header, part]);
    header = Buffer.alloc(0);
  }
  yield Buffer.concat([header, gzipEnd(crc, textBytes)]);
}

/** Copies each piece before it requests the next piece. The pieces may therefore share memory. */
export async function* copied(pieces: Iterable<Piece> | AsyncIterable<Piece>): AsyncGenerator<Piece> {
  for await (const piece of pieces) yield typeof piece === "string" ? piece : Uint8Array.from(piece);
}
