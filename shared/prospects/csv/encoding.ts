/** Finds the text encoding of an uploaded file, and decodes it as a stream. */
import { TextDecoder } from "node:util";
import * as z from "zod/mini";
import { BadFile } from "#shared/prospects/csv/format.ts";

/** The encodings in which spreadsheet programs save text. The names are labels of `TextDecoder`. */
export const Encoding = z.enum(["utf-8", "utf-16le", "utf-16be", "windows-1252"]);
export type Encoding = z.infer<typeof Encoding>;

export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Number of bytes at the beginning of a file that are enough to recognize a workbook or UTF-16. */
const START_BYTES = 4;

/** The first bytes of a ZIP archive (such as xlsx, ods and numbers files), of an empty ZIP archive, and of an xls file. */
const workbooks = [Buffer.of(0x50, 0x4b, 3, 4), Buffer.of(0x50, 0x4b, 5, 6), Buffer.of(0xd0, 0xcf, 0x11, 0xe0)];

/**
 * A byte order mark, or an ASCII character in two bytes, shows UTF-16. Any other file is UTF-8 if all its bytes are valid, and otherwise
 * Windows-1252, so it is read to its end. Throws BadFile for a workbook.
 */
export async function encodingOf(bytes: Bytes): Promise<Encoding> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let start: Uint8Array = new Uint8Array();
  let isUtf8 = true;
  for await (const chunk of bytes) {
    if (start.length < START_BYTES) start = Buffer.concat([start, chunk.subarray(0, START_BYTES)]);
    isUtf8 &&= isDecodable(decoder, chunk, true);
    if (start.length < START_BYTES) continue;
    const encoding = utf16ByStart(start);
    if (encoding !== undefined) return encoding;
    if (!isUtf8) return "windows-1252";
  }
  isUtf8 &&= isDecodable(decoder, new Uint8Array(), false);
  return utf16ByStart(start) ?? (isUtf8 ? "utf-8" : "windows-1252");
}

/** Throws BadFile for a workbook. */
function utf16ByStart(start: Uint8Array): Encoding | undefined {
  if (workbooks.some((signature) => signature.equals(start.subarray(0, START_BYTES)))) {
    throw new BadFile(
      "The file is a workbook (such as xlsx) or a ZIP archive, not CSV. In the spreadsheet program, save as CSV UTF-8, and import that file.",
    );
  }
  const [one = 0, two = 0] = start;
  if (one === 0xff && two === 0xfe) return "utf-16le";
  if (one === 0xfe && two === 0xff) return "utf-16be";
  if (start.length < 2) return undefined;
  if (two === 0 && isAscii(one)) return "utf-16le";
  return one === 0 && isAscii(two) ? "utf-16be" : undefined;
}

const isAscii = (byte: number): boolean => byte > 0 && byte < 0x80;

function isDecodable(decoder: TextDecoder, bytes: Uint8Array, more: boolean): boolean {
  try {
    decoder.decode(bytes, { stream: more });
    return true;
  } catch {
    return false;
  }
}

/** Larger chunks are divided, so that a reader of the text can stop early. */
const PIECE_BYTES = 64 * 1024;

/**
 * ASCII control characters other than tabs and line breaks show that a file is not text, because Windows-1252 accepts every byte. The five
 * bytes that it leaves undefined become other control characters (https://encoding.spec.whatwg.org/#index-windows-1252), which are
 * accepted.
 */
const notText = /[[\p{Cc}&&\p{ASCII}]--[\t-\r]]/v;

/** Yields the text of the file without its byte order mark. Throws BadFile at the first bytes that are not text. */
export async function* decoded(bytes: Bytes, encoding: Encoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      yield decode(decoder, encoding, chunk.subarray(at, at + PIECE_BYTES), true);
    }
  }
  yield decode(decoder, encoding, new Uint8Array(), false);
}

/**
 * `more` keeps an incomplete character for the next call. A last call without bytes ends the text, because several releases of Node.js 20
 * to 24 otherwise decode 0x80 to 0x9F of Windows-1252 as Latin-1 (https://github.com/nodejs/node/issues/56542).
 */
function decode(decoder: TextDecoder, encoding: Encoding, bytes: Uint8Array, more: boolean): string {
  let text: string;
  try {
    text = decoder.decode(bytes, { stream: more });
  } catch (error) {
    throw new BadFile(`The file is not text in ${encoding.toUpperCase()}.`, { cause: error });
  }
  if (encoding === "windows-1252" && notText.test(text)) {
    throw new BadFile("The file is not text in UTF-8, UTF-16 or Windows-1252.");
  }
  return text;
}
