/** Bytes of an uploaded file -> its text: UTF-8, or UTF-16 where a byte order mark says so. */
import { TextDecoder } from "node:util";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";

type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/** Larger pieces are cut, so that what reads the text can stop early. */
const PIECE_BYTES = 64 * 1024;

/** Without the mark. Throws BadFile at the first bytes that are no text of that encoding. */
export async function* decoded(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let first: Uint8Array = new Uint8Array();
  let encoding: Encoding = "utf-8";
  for await (const chunk of bytes) {
    let piece = chunk;
    if (decoder === undefined) {
      piece = Buffer.concat([first, chunk]);
      first = piece;
      if (first.length < 2) continue;
      encoding = encodingOf(first);
      decoder = new TextDecoder(encoding, { fatal: true });
    }
    for (let at = 0; at < piece.length; at += PIECE_BYTES) {
      yield decode(decoder, encoding, piece.subarray(at, at + PIECE_BYTES), true);
    }
  }
  decoder ??= new TextDecoder(encoding, { fatal: true });
  yield decode(decoder, encoding, first.length < 2 ? first : new Uint8Array(), false);
}

function encodingOf([one, two]: Uint8Array): Encoding {
  if (one === 0xff && two === 0xfe) return "utf-16le";
  return one === 0xfe && two === 0xff ? "utf-16be" : "utf-8";
}

/** A character may be cut by the end of a chunk: the decoder keeps its beginning while there is `more`. */
function decode(decoder: TextDecoder, encoding: Encoding, bytes: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch (error) {
    throw new BadFile(`The file is not text in ${encoding.toUpperCase()}.`, { cause: error });
  }
}
