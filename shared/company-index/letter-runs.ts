/**
 * The runs of letters in words: `rita` and `cole` and `example` and `com` in an e-mail address. A word of letters alone that is looked for
 * stands in another word exactly where it stands in one of its runs; and of runs there are few distinct ones where all words differ.
 */
import { PlainTexts } from "#shared/company-index/plain-texts.ts";

const BLANK = 0x20;
const LINE_BREAK = 0x0a;

/** All of a character beyond ASCII counts as letters. */
const isLetter = (byte: number): boolean =>
  byte >= 0x80 || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);

export const areLetters = (wanted: Uint8Array): boolean => wanted.every(isLetter);

/** Each word as a text that holds its runs, in the order of the words; `starts` says where each begins, one more at the end. */
export function letterRuns(bytes: Uint8Array, starts: Uint32Array): PlainTexts {
  const runs = Buffer.alloc((starts.at(-1) ?? 0) - (starts[0] ?? 0));
  const runStarts = new Uint32Array(starts.length);
  let end = 0;
  for (let word = 0; word + 1 < starts.length; word++) {
    const from = end;
    // A line break ends each word.
    const last = (starts[word + 1] ?? 0) - 1;
    for (let at = starts[word] ?? 0; at < last; at++) {
      const byte = bytes[at] ?? BLANK;
      if (isLetter(byte)) runs[end++] = byte;
      else if (end > from && runs[end - 1] !== BLANK) runs[end++] = BLANK;
    }
    runs[end++] = LINE_BREAK;
    runStarts[word + 1] = end;
  }
  return new PlainTexts(runs.subarray(0, end), runStarts);
}
