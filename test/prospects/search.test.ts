/** Tests that the search finds the same prospects as a simple second implementation, which compares each text character by character. */
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Search } from "#shared/prospects/filter.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { prospectPredicate } from "../harness/one-prospect.ts";
import { prospectRow } from "../harness/prospect-row.ts";

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

/**
 * The texts contain only a few letters, so that words often match. Some characters are wildcards in other search languages, and some are
 * unusual blanks.
 */
const alphabet = [..."abABéÉσςΣ", "e\u0301", "E\u0301"];
const letters = fc.constantFrom(...alphabet, ..."%_*.\\[1234-+( \t\u00a0\n");
const someText = fc.string({ unit: letters, maxLength: 8 });
const phone = fc.string({ unit: fc.constantFrom(..."1234 -()+ax"), maxLength: 8 });
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

function oracle(query: string, given: Given, notes: readonly string[]): boolean {
  const { phoneNumber, secondaryPhoneNumber, address: place } = given;
  const { id: _, ...parts } = place ?? { id: 0 };
  const texts = [given.name, phoneNumber, secondaryPhoneNumber, given.emailAddress, ...Object.values(parts), ...notes];
  for (const word of query.match(/\S+/g) ?? []) {
    const inText = texts.some((text) => text !== null && contains(lettersOf(text), lettersOf(word)));
    const digits = [...word].filter(isDigit);
    const asNumber = digits.length > 0 && !lettersOf(word).some((letter) => alphabet.includes(letter));
    const inPhone = [phoneNumber, secondaryPhoneNumber].some(
      (text) => text !== null && contains([...text].filter(isDigit), digits),
    );
    if (!inText && !(asNumber && inPhone)) return false;
  }
  return true;
}

const isDigit = (letter: string): boolean => "0123456789".includes(letter);

const graphemes = new Intl.Segmenter("en");
const lettersOf = (text: string): string[] => Array.from(graphemes.segment(text), ({ segment }) => segment);

/** Returns true if the text contains the word at any position, ignoring case and Unicode normalisation. */
function contains(text: readonly string[], word: readonly string[]): boolean {
  const same = (a: string | undefined, b: string): boolean => a === b || (a !== undefined && small(a) === small(b));
  return text.some((_, from) => word.every((letter, i) => same(text[from + i], letter)));
}

const small = (letter: string): string =>
  ({ A: "a", B: "b", É: "é", "e\u0301": "é", "E\u0301": "é", Σ: "σ", ς: "σ" })[letter] ?? letter;

test("the index stores only the texts that a prospect has", () => {
  const none = { phoneNumber: null, secondaryPhoneNumber: null, emailAddress: null, address: null };
  expect(indexRow(prospectRow({ ...none, name: "Ann" }))).toMatchObject({ text: "ANN", phoneDigits: "" });
});

test("a prospect is found only if each word occurs in some text", () => {
  fc.assert(
    fc.property(someText, prospects, fc.array(someText, { maxLength: 3 }), (query, given, notes) => {
      expect(finds(query, given, notes)).toBe(oracle(query, given, notes));
    }),
    { numRuns: 3_000 },
  );
});

test("any part of a text finds it, in upper case and in any Unicode normalisation", () => {
  const piece = fc.tuple(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), fc.nat(), fc.nat());
  fc.assert(
    fc.property(piece, ([text, a, b]) => {
      const pieces = lettersOf(text);
      const query = pieces.slice(a % pieces.length, (a % pieces.length) + 1 + (b % pieces.length)).join("");
      expect(finds(query, { name: text })).toBe(true);
      expect(finds(query.toUpperCase(), {}, [text])).toBe(true);
      expect(finds(query.normalize("NFD"), { name: text.normalize("NFC") })).toBe(true);
      expect(finds(query.normalize("NFC"), {}, [text.normalize("NFD")])).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ["ΟΔΟΣ", "ΟΔΟΣΑ", true],
  ["straße", "STRASSE", true],
  ["STRASSE", "große Straße", true],
  ["ode\u0301", "MODÉ", true],
  ["odé", "MODE\u0301", true],
  ["ode", "Modé", false],
  ["%", "100", false],
  ["a.c", "abc", false],
  ["abc", "", false],
])("%s in %s: %s", (query, name, found) => {
  expect(finds(query, { name })).toBe(found);
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

test("a query has at most 200 characters", () => {
  expect(z.safeParse(Search, "\u{1F415}".repeat(200)).success).toBe(true);
  expect(z.safeParse(Search, "x".repeat(201)).success).toBe(false);
});
