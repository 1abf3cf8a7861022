/** Tests that the search finds the same prospects as a simple second implementation, which converts letters by a table (`forms`). */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { searchable } from "#shared/caseless.ts";
import * as limits from "#shared/limits.ts";
import { Search } from "#shared/prospects/filter.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { prospectPredicate } from "../harness/one-prospect.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { sized } from "../harness/tier.ts";

/** Values for the fields that the search must ignore. They contain texts for which the test searches. */
const unsearched = { source: "abc", sourceId: "abc", customFieldData: '{"a":"abc"}' };

const admin: Caller = { companyId: 1, userId: 9, role: "admin", permissions: [] };
const nothingNamed = { version: 1, statuses: new Map(), tags: new Map(), users: new Map() };
const finds = (query: string, prospect: Partial<StoredProspect>, notes: string[] = []): boolean =>
  prospectPredicate(
    { search: Search.parse(query) },
    admin,
    nothingNamed,
  )(prospectRow({ ...unsearched, ...prospect }), notes);

const fiLigature = "\uFB01";
const peaceLigature = "\uFDFA";
const syllable = { ha: "\uD558", han: "\uD55C" };

/** The form of each character with which searches compare it, as a table. All other characters of the tests are compared as they are. */
const forms: Readonly<Record<string, string>> = {
  ...{ A: "a", B: "b", "\u0301": "", "\u00E9": "e", "\u00C9": "e", E: "e" },
  ...{ "\u00C5": "a", "\u212B": "a", "\u030A": "", "\u03A3": "\u03C3", "\u03C2": "\u03C3", "\u0130": "i", I: "i" },
  ...{ "\u00DF": "ss", "\u1E9E": "ss", S: "s", [fiLigature]: "fi" },
  ...{ "\uFF26": "f", F: "f", "\uFF11": "1", "\uFF0B": "+" },
  ...{ "\u2019": "'", "\u2018": "'", "\u00B4": "'", "\u201C": '"', "\u2033": '"' },
  ...{ "\u2013": "-", "\u2011": "-", "\u2212": "-" },
  ...{ "\u00AD": "", [syllable.ha]: "\u1112\u1161", [syllable.han]: "\u1112\u1161\u11AB", "\u00A8": "" },
  [peaceLigature]: [..."\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064A\u0647 \u0648\u0633\u0644\u0645"]
    .filter((letter) => letter !== " ")
    .join(""),
};

/** A few letters, so that words often match, and characters that are wildcards in other search languages, or unusual blanks. */
const alphabet = [..."abABe", "\u03C3", ...Object.keys(forms)];
const letters = fc.constantFrom(...alphabet, ..."%_*.\\[1234-+( \t\u00a0\u200b\n");
const someText = fc.string({ unit: letters, maxLength: 8 });
const phone = fc.string({ unit: fc.constantFrom(..."1234 -()+ax\uFF11\u2013"), maxLength: 8 });
const address = fc.record({
  id: fc.constant(5),
  address1: someText,
  address2: fc.option(someText),
  city: someText,
  state: someText,
  zip: someText,
  formattedAddress: fc.option(someText),
});
const prospects = fc.record({
  name: fc.option(someText),
  phoneNumber: fc.option(phone),
  secondaryPhoneNumber: fc.option(phone),
  emailAddress: fc.option(someText),
  address: fc.option(address),
});

type Given = typeof prospects extends fc.Arbitrary<infer T> ? T : never;

const formOf = (text: string): string => [...text].map((letter) => forms[letter] ?? letter).join("");
const wordsOf = (text: string): string[] => text.split(/[ \t\u00A0\u200B\n]/).map(formOf);
const digitsOf = (text: string): string => [...formOf(text)].filter((letter) => "0123456789".includes(letter)).join("");

function oracle(query: string, given: Given, notes: readonly string[]): boolean {
  const { phoneNumber, secondaryPhoneNumber, address: place } = given;
  const { id: _, ...parts } = place ?? { id: 0 };
  const texts = [given.name, phoneNumber, secondaryPhoneNumber, given.emailAddress, ...Object.values(parts), ...notes];
  const words = texts.flatMap((text) => wordsOf(text ?? ""));
  const phones = [phoneNumber, secondaryPhoneNumber]
    .map((phone) => digitsOf(phone ?? ""))
    .filter((digits) => digits !== "");
  return wordsOf(query).every((word) => {
    const digits = digitsOf(word);
    const isNumber = digits !== "" && !/\p{L}/u.test(word);
    const isInternational =
      isNumber && word.startsWith("+") && [...word.slice(1)].every((one) => /[0-9().-]/.test(one));
    return (
      words.some((one) => one.includes(word)) ||
      (isNumber && phones.some((phone) => phone.includes(digits))) ||
      (isInternational && phones.some((phone) => [1, 2, 3].some((code) => digits.slice(code) === phone)))
    );
  });
}

test("the index stores only the texts that a prospect has", () => {
  const none = { phoneNumber: null, secondaryPhoneNumber: null, emailAddress: null, address: null };
  expect(indexRow(prospectRow({ ...none, name: "Ann" }))).toMatchObject({ text: "ANN", phoneDigits: "" });
});

test("a prospect is found only if each word occurs in some text", { tags: "sized" }, () => {
  fc.assert(
    fc.property(someText, prospects, fc.array(someText, { maxLength: 3 }), (query, given, notes) => {
      expect(finds(query, given, notes)).toBe(oracle(query, given, notes));
    }),
    { numRuns: sized({ short: 800, wide: 10_000 }) },
  );
});

test("any part of a text finds it, in upper case and in any Unicode normalization", { tags: "sized" }, () => {
  // Letters with an iota subscript are left out: searches ignore the subscript, but in upper case it becomes a letter of its own.
  const grapheme = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 1 })
    .filter((one) => !/\u0345/.test(one.normalize("NFD")));
  fc.assert(
    fc.property(fc.array(grapheme, { minLength: 1, maxLength: 20 }), fc.nat(), fc.nat(), (pieces, a, b) => {
      const text = pieces.join("");
      const letters = [...text];
      const query = letters.slice(a % letters.length, (a % letters.length) + 1 + (b % letters.length)).join("");
      expect(finds(query, { name: text })).toBe(true);
      expect(finds(query.toUpperCase(), {}, [text])).toBe(true);
      expect(finds(query.normalize("NFD"), { name: text.normalize("NFC") })).toBe(true);
      expect(finds(query.normalize("NFC"), {}, [text.normalize("NFD")])).toBe(true);
    }),
    { numRuns: sized({ short: 300, wide: 3_000 }) },
  );
});

test.each([
  ["\u039F\u0394\u039F\u03A3", "\u039F\u0394\u039F\u03A3\u0391", true],
  ["\u03BF\u03B4\u03BF\u03C2", "\u039F\u0394\u039F\u03A3", true],
  ["stra\u00DFe", "STRASSE", true],
  ["STRASSE", "gro\u00DFe Stra\u00DFe", true],
  ["STRA\u1E9EE", "stra\u00DFe", true],
  ["ode\u0301", "MOD\u00C9", true],
  ["od\u00E9", "MODE\u0301", true],
  ["ode", "Mod\u00E9", true],
  ["\u00C5ngstro\u0308m", "angstrom", true],
  ["angstrom", "A\u030Angstr\u00F6m", true],
  ["\u212Bngstr\u00F6m", "\u00C5NGSTR\u00D6M", true],
  ["fine", `${fiLigature}ne`, true],
  [`${fiLigature}nd`, "FINDER", true],
  ["full", "\uFF26\uFF55\uFF4C\uFF4C width", true],
  ["\uFF26\uFF55\uFF4C\uFF4C", "full", true],
  ["o'brien", "Pat O\u2019Brien", true],
  ["O\u2018Brien", "Pat O'Brien", true],
  ["O\u00B4Brien", "Pat O'Brien", true],
  ['6"', "6\u2033 pipe", true],
  ['"dog"', "\u201Cdog\u201D", true],
  ["anne-marie", "Anne\u2013Marie", true],
  ["anne\u2010marie", "Anne-Marie", true],
  ["cooperate", "co\u00ADoperate", true],
  ["co\u00ADoperate", "cooperate", true],
  ["istanbul", "\u0130STANBUL", true],
  ["\u0130stanbul", "Istanbul", true],
  [syllable.han, "\u1112\u1161\u11AB", true],
  [syllable.ha, `${syllable.han}\uAD6D`, true],
  [syllable.han, syllable.ha, false],
  [peaceLigature, `name ${peaceLigature} name`, true],
  ["\u00AD", "abc", true],
  ["\u00A8", "abc", true],
  ["ab", "a\u00A8b", true],
  ["ab", "a b", false],
  ["ab", "a\u200Bb", false],
  ["a\u200Bb", "b a", true],
  ["%", "100", false],
  ["a.c", "abc", false],
  ["abc", "", false],
])("%s in %s: %s", (query, name, found) => {
  expect(finds(query, { name })).toBe(found);
  expect(finds(query, {}, [name])).toBe(found);
});

test("a folded text is at most three times as long as the limit of the text, and holds no half of a character", () => {
  const longest = peaceLigature.repeat(limits.name);
  const { text } = indexRow(prospectRow({ name: longest }));
  expect([...(text.split("\n")[0] ?? "")]).toHaveLength(3 * limits.name);
  expect(finds(peaceLigature, { name: longest })).toBe(true);
  expect(finds(peaceLigature.repeat(limits.search), { name: longest })).toBe(true);
  expect(searchable(`a${"\u{10400}".repeat(20)}`, 2)).toBe(`A${"\u{10400}".repeat(5)}`);
});

test("a word is left out if another word of the query contains it, and implies each of its matches", () => {
  const wordsOf = (query: string) => Search.parse(query).map(({ text }) => text);
  expect(wordsOf("a bab A ab 1 +12 -1 (")).toEqual(["BAB", "+12", "-1", "("]);
  expect(wordsOf("( (1")).toEqual(["(1", "("]);
  expect(wordsOf(Array.from({ length: 100 }, (_, i) => i % 10).join(" "))).toHaveLength(10);
});

test.each([
  ["+13035550142", "(303) 555-0142", true],
  ["+1-303.555/0142", "(303) 555-0142", true],
  ["\uFF0B1303\u2013555\u20130142", "303 555 0142", true],
  ["+1233035550142", "303 555 0142", true],
  ["+12343035550142", "303 555 0142", false],
  ["13035550142", "303 555 0142", false],
  ["+13035550142", "303 555 0142 9", false],
  ["+13035550142", "9 303 555 0142", false],
  ["+1x3035550142", "303 555 0142", false],
  ["+1", "none", false],
  ["+12", "none", false],
  ["+1303555", "303 555 0142", false],
])("the international number %s in the phone %s: %s", (query, phoneNumber, found) => {
  expect(finds(query, { phoneNumber })).toBe(found);
});

test.each([
  ["303-555", true],
  ["(303)555-01", true],
  ["3035550142", true],
  ["555 0142", true],
  ["x303555", false],
  ["--", false],
  ["42303", false],
])("phone (303) 555-0142 by %s: %s", (query, found) => {
  expect(finds(query, { phoneNumber: "(303) 555-0142", secondaryPhoneNumber: "303" })).toBe(found);
});
