/** Tests that comparing texts ignores case, blanks and Unicode normalization, and that every unique text fits into a key of the table. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { isBlank, singleSpaced } from "#shared/blank.ts";
import { caseless, folded, searchable } from "#shared/caseless.ts";
import * as keys from "#shared/db/keys.ts";
import { DisplayValue } from "#shared/reference/schema.ts";

/** All code points except surrogates, private-use and unassigned ones. These exceptions have neither case nor a second normalized form. */
const letters = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point)).filter(
  (letter) => !/[\p{Cs}\p{Co}\p{Cn}]/u.test(letter),
);

const writings = (text: string): string[] => [
  text.toUpperCase(),
  text.toLowerCase(),
  text.normalize("NFC"),
  text.normalize("NFD"),
  caseless(text),
];

test("every Unicode letter equals its upper case, lower case, NFC and NFD forms, also with a combining mark", () => {
  const marks = ["\u0300", "\u0308", "\u0327", "\u0323"];
  // Letters with an iota subscript are left out: in upper case, the mark follows the iota, so the comparison fails. Nobody writes such
  // texts.
  const bases = letters.slice(0, 0x2000).filter((letter) => !letter.normalize("NFD").includes("\u0345"));
  const marked = bases.flatMap((letter) => marks.map((mark) => letter + mark));
  const wrong = [...letters, ...marked].filter((text) =>
    writings(text).some((other) => other !== text && caseless(other) !== caseless(text)),
  );
  expect(wrong).toEqual([]);
});

test.each([
  ["Straße", "STRASSE", true],
  ["ΟΔΟΣ", "οδος", true],
  ["ὈΔΥΣΣΕΎΣ", "ὀδυσσεύσ", true],
  ["Ame\u0301lie", "AMÉLIE", true],
  [" Denver ", "denver", true],
  ["ﬁne", "FINE", true],
  ["Amelie", "Amélie", false],
  ["a b", "ab", false],
])("%j equals %j: %j", (a, b, same) => {
  expect(folded(a) === folded(b)).toBe(same);
});

test("converting a searchable form again changes nothing, and the form of two letters is the forms of both, one after the other", () => {
  const form = (text: string): string => searchable(text, 100);
  const changed = letters.filter(
    (letter) => letter.normalize("NFKD").toUpperCase() !== letter || /[\p{P}\p{S}]/u.test(letter),
  );
  // Letters with an iota subscript are left out: searches ignore the subscript, but in upper case it becomes a letter of its own.
  const cased = changed.filter((letter) => !letter.normalize("NFD").includes("\u0345"));
  const words = changed.filter((letter) => !isBlank(letter));
  expect(changed.filter((letter) => form(form(letter)) !== form(letter))).toEqual([]);
  expect(words.filter((letter) => form(`\u03C3${letter}a\u0301`) !== `\u03A3${form(letter)}A`)).toEqual([]);
  expect(cased.filter((letter) => writings(letter).some((other) => form(other) !== form(letter)))).toEqual([]);
});

test("two texts have the same uniqueness key exactly if the caseless comparison finds them equal", () => {
  const text = fc.string({ unit: fc.constantFrom(..."aAσςΣßSs", "\u1e9e", "\u0301", "é"), maxLength: 4 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(folded(a) === folded(b)).toBe(caseless(a) === caseless(b));
    }),
    { numRuns: 5_000 },
  );
});

test("the uniqueness key of every allowed value of a status or tag fits DynamoDB's limit of 1 024 bytes", () => {
  const symbols = letters.filter((letter) => Buffer.byteLength(folded(letter)) > 4);
  expect(symbols.length).toBeGreaterThan(10);
  for (const symbol of symbols) {
    for (const length of [33, 100]) {
      const parsed = z.safeParse(DisplayValue, symbol.repeat(length));
      if (!parsed.success) continue;
      const { sk } = keys.uniqueValue(1, "STATUS", folded(parsed.data));
      expect(Buffer.byteLength(sk), symbol).toBeLessThanOrEqual(1_024);
    }
  }
});

/** The characters with the property White_Space in PropList.txt of Unicode, and two without width that the service counts as blank too. */
const blanks = [
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
  ...Array.from({ length: 11 }, (_, i) => 0x2000 + i),
  ...[0x200b, 0xfeff],
].map((point) => String.fromCodePoint(point));

test("exactly the white space of Unicode, U+200B and U+FEFF are blank", () => {
  const all = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point));
  expect(new Set(all.filter(isBlank))).toEqual(new Set(blanks));
  expect(["", blanks.join(""), " \u200d", "\u00ad"].map(isBlank)).toEqual([true, true, false, false]);
});

const run = fc.array(fc.constantFrom(...blanks), { minLength: 1, maxLength: 3 }).map((list) => list.join(""));
const word = fc.constantFrom("New", "york", "ÉTÉ", "\u200d", "-");

test("two names are the same if they differ only in their blanks and in case", () => {
  fc.assert(
    fc.property(
      fc.array(word, { minLength: 1, maxLength: 4 }),
      fc.array(run, { minLength: 5, maxLength: 5 }),
      (words, gaps) => {
        const [before = "", after = "", ...between] = gaps;
        const written = `${before}${words.map((text, i) => (i === 0 ? text : `${between[i - 1] ?? " "}${text}`)).join("")}${after}`;
        expect(singleSpaced(written)).toBe(words.join(" "));
        expect(folded(written)).toBe(folded(words.join(" ").toLowerCase()));
        expect(folded(words.join(""))).toBe(words.length === 1 ? folded(written) : folded(written).replaceAll(" ", ""));
      },
    ),
  );
});
