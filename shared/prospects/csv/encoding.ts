/** Finds the text encoding of an uploaded file, and decodes it as a stream. */
import { TextDecoder } from "node:util";
import * as z from "zod/mini";
import { BadFile } from "#shared/prospects/csv/format.ts";

/** The names are labels of `TextDecoder`. */
export const Encoding = z.enum(["utf-8", "utf-16le", "utf-16be", "windows-1252"]);
export type Encoding = z.infer<typeof Encoding>;

export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** This number of bytes suffices to recognise a workbook or a byte order mark. */
const START_BYTES = 4;

/** The first bytes of a ZIP archive (such as xlsx, ods and numbers files), of an empty ZIP archive, and of an xls file. */
const workbooks = [Buffer.of(0x50, 0x4b, 3, 4), Buffer.of(0x50, 0x4b, 5, 6), Buffer.of(0xd0, 0xcf, 0x11, 0xe0)];

/**
 * A byte order mark shows UTF-8 or UTF-16. An ASCII character in two bytes also shows UTF-16. Any other file is Windows-1252 if it has
 * bytes that are invalid in UTF-8, and at least as many of these as valid characters of several bytes. Throws BadFile for a workbook.
 */
export async function encodingOf(bytes: Bytes): Promise<Encoding> {
  const counts = new Utf8Counts();
  let start: Uint8Array = new Uint8Array();
  for await (const chunk of bytes) {
    if (start.length < START_BYTES) start = Buffer.concat([start, chunk.subarray(0, START_BYTES)]);
    counts.add(chunk);
    if (start.length < START_BYTES) continue;
    const encoding = encodingByStart(start);
    if (encoding !== undefined) return encoding;
  }
  counts.end();
  return (
    encodingByStart(start) ?? (counts.invalid === 0 || counts.characters > counts.invalid ? "utf-8" : "windows-1252")
  );
}

function encodingByStart(start: Uint8Array): Encoding | undefined {
  if (workbooks.some((signature) => signature.equals(start.subarray(0, START_BYTES)))) {
    throw new BadFile(
      "The file is a workbook (such as xlsx) or a ZIP archive, not CSV. In the spreadsheet program, save as CSV UTF-8, and import that file.",
    );
  }
  const [one = 0, two = 0, three = 0] = start;
  if (one === 0xef && two === 0xbb && three === 0xbf) return "utf-8";
  if (one === 0xff && two === 0xfe) return "utf-16le";
  if (one === 0xfe && two === 0xff) return "utf-16be";
  if (start.length < 2) return undefined;
  if (two === 0 && isAscii(one)) return "utf-16le";
  return one === 0 && isAscii(two) ? "utf-16be" : undefined;
}

const isAscii = (byte: number): boolean => byte > 0 && byte < 0x80;

/** Maximum bytes that are decoded at once, so that a reader of the text can stop early. */
const PIECE_BYTES = 64 * 1024;

/** Windows-1252 accepts every byte, so only ASCII control characters other than tabs and line breaks show that a file is not text. */
const notText = /[[\p{Cc}&&\p{ASCII}]--[\t-\r]]/v;

/** MS-DOS programs write this character after the last line, so it is removed at the end of a file. */
const END_OF_FILE = "\u001A";

export interface FileText extends AsyncIterable<string> {
  /**
   * The number of characters U+FFFD before the first invalid byte. Undefined until an invalid byte is read. The decoder writes this
   * character for invalid bytes too, so a reader that counts the characters finds the cell of the first invalid byte.
   */
  readonly validReplacements?: number | undefined;
}

/** Returns the text without the byte order mark. Reading it throws BadFile at the first bytes that are not text. */
export function decoded(bytes: Bytes, encoding: Encoding): FileText {
  const counts = encoding === "utf-8" ? new Utf8Counts() : undefined;
  return {
    [Symbol.asyncIterator]: () => pieces(bytes, encoding, counts),
    get validReplacements() {
      return counts === undefined || counts.invalid === 0 ? undefined : counts.replacements;
    },
  };
}

async function* pieces(bytes: Bytes, encoding: Encoding, counts: Utf8Counts | undefined): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: counts === undefined });
  let held = "";
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES);
      counts?.add(piece);
      const text = held + decode(decoder, encoding, piece, true);
      held = text.endsWith(END_OF_FILE) ? END_OF_FILE : "";
      yield checked(text.slice(0, text.length - held.length), encoding);
    }
  }
  counts?.end();
  const last = decode(decoder, encoding, new Uint8Array(), false);
  if (last !== "") yield checked(held + last, encoding);
}

/**
 * Pass `more` with all bytes, and end the text with a call that has no bytes. In a call with bytes and without `more`, several releases of
 * Node.js 20 to 24 decode 0x80 to 0x9F of Windows-1252 as Latin-1 (https://github.com/nodejs/node/issues/56542).
 */
function decode(decoder: TextDecoder, encoding: Encoding, bytes: Uint8Array, more: boolean): string {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch (error) {
    throw new BadFile(`The file is not text in ${encoding.toUpperCase()}.`, { cause: error });
  }
}

function checked(text: string, encoding: Encoding): string {
  if (encoding === "windows-1252" && notText.test(text)) {
    throw new BadFile("The file is not text in UTF-8, UTF-16 or Windows-1252.");
  }
  return text;
}

/** The bytes of U+FFFD. */
const REPLACEMENT = [0xef, 0xbf, 0xbd] as const;

export class Utf8Counts {
  /** Number of valid characters that have several bytes. */
  characters = 0;
  /** Number of bytes that belong to no valid character. */
  invalid = 0;
  /** Number of valid characters U+FFFD before the first invalid byte. */
  replacements = 0;
  /** The beginning of a character that the next chunk may complete. */
  #rest: Uint8Array = new Uint8Array();

  add(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let position = 0;
    for (;;) {
      let lead = bytes[position];
      while (lead !== undefined && lead < 0x80) lead = bytes[++position];
      if (lead === undefined) break;
      const length = lengthAt(bytes, position, lead);
      if (length === undefined) break;
      if (length === 0) {
        this.invalid++;
        position++;
        continue;
      }
      this.characters++;
      if (this.invalid === 0 && REPLACEMENT.every((byte, i) => bytes[position + i] === byte)) this.replacements++;
      position += length;
    }
    this.#rest = bytes.slice(position);
  }

  /** Call it after the last chunk. The bytes of an incomplete character at the end count as invalid. */
  end(): void {
    this.invalid += this.#rest.length;
    this.#rest = new Uint8Array();
  }
}

/** `lead` is a byte above 0x7F. Returns 0 if it begins no valid character, and undefined if the chunk ends within the character. */
function lengthAt(bytes: Uint8Array, at: number, lead: number): number | undefined {
  const length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) return undefined;
    const [low, high] = i === 1 ? secondByte(lead) : [0x80, 0xbf];
    if (byte < low || byte > high) return 0;
  }
  return length;
}

function secondByte(lead: number): readonly [low: number, high: number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  return lead === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}
