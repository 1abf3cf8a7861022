/** Tests which characters are blank, and that names are compared with each run of them as one space. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { isBlank, singleSpaced } from "#shared/blank.ts";
import { folded } from "#shared/caseless.ts";

/** The property White_Space in PropList.txt of Unicode, and the two characters without width that the service adds. */
const blanks = [
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
  ...Array.from({ length: 11 }, (_, i) => 0x2000 + i),
  ...[0x200b, 0xfeff],
].map((point) => String.fromCodePoint(point));

test("exactly the white space of Unicode, U+200B and U+FEFF are blank", () => {
  const all = Array.from({ length: 0x110000 }, (_, point) => String.fromCodePoint(point));
  expect(new Set(all.filter(isBlank))).toEqual(new Set(blanks));
  expect([isBlank(""), isBlank(blanks.join("")), isBlank(" \u200d"), isBlank("\u00ad")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
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
