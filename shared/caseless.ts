/** Converts strings to forms that can be compared case-insensitively. */
import { singleSpaced, wordsIn } from "#shared/blank.ts";

/**
 * Two strings have the same result if they differ only in case, in ß and SS, in the two lower-case sigmas, or in composed and decomposed
 * accents. The value is decomposed first, because a composed and a decomposed letter can have different upper cases.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** The form in which names of statuses, tags, cities and users are compared and are part of rows and keys: in lower case, single-spaced. */
export const folded = (value: string): string => caseless(singleSpaced(value)).toLowerCase();

/** `searchable` cuts its result at this many times `limit`, because one ligature can become 18 letters. */
const LONGEST_FOLD = 3;

/**
 * The words of a text in the form in which searches compare them, separated by spaces. Two words have the same form if they differ only in
 * case, accents, widths, ligatures, kinds of quotes or hyphens, or soft hyphens. The form of a part of a word is a part of the word's form.
 * `limit` is the maximum length of the text, in code points.
 */
export function searchable(text: string, limit: number): string {
  // This shortcut for ASCII, which most texts are, needs a tenth of the time.
  if (/^[\x21-\x7E]+(?: [\x21-\x7E]+)*$/.test(text)) return text.toUpperCase();
  const form = wordsIn(wordsIn(text).map(decomposed).join("\n")).join(" ").toLowerCase().toUpperCase();
  const longest = LONGEST_FOLD * limit;
  return form.length <= longest ? form : Array.from(form).slice(0, longest).join("");
}

/** Some characters decompose to a space and a mark. The space is removed, because it separates no words of the text. */
const decomposed = (word: string): string =>
  word
    .replace(/[\u201C-\u201F\u2033\u2036\u00AB\u00BB\u301D-\u301F]/g, '"')
    .replace(/[\u00B4\u1FFD]/g, "'")
    .normalize("NFKD")
    .replace(/[\p{M}\u00AD ]/gu, "")
    .replace(/[\u2018-\u201B\u2032\u2035\u2039\u203A\u02B9\u02BB-\u02BD]/g, "'")
    .replace(/[\p{Pd}\u2212\u2043]/gu, "-");
