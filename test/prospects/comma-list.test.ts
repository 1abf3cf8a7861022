/** Tests that the parser of comma-separated lists returns the same result as a second, simple parser, for any text. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commaList } from "#shared/prospects/filter.ts";
import { valuesIn } from "./comma-list-oracle.ts";

const named = (text: string): string[] =>
  commaList(text)
    .map((value) => value.trim())
    .filter(Boolean);

test("both parsers agree on any text of letters, quotes, commas and spaces", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", '"', '"', ",", " "), maxLength: 12 }), (text) => {
      expect(named(text)).toEqual(valuesIn(text));
    }),
    { numRuns: 20_000 },
  );
});

test.each([
  ['"Washington, D.C.",Denver', ["Washington, D.C.", "Denver"]],
  [' "a ""b"", c" , d,, ', ['a "b", c', "d"]],
  ['"a,b', ['"a', "b"]],
  ['"a,b"c,d', ['"a', 'b"c', "d"]],
  ['x"a,b"', ['x"a', 'b"']],
  ['"""VIP""","",""""', ['"VIP"', '"']],
  ['"  "', []],
])("%j contains %j", (text, names) => {
  expect(named(text)).toEqual(names);
  expect(valuesIn(text)).toEqual(names);
});

test("a quoted value, or an unquoted one without commas, is read back unchanged", () => {
  const value = fc.string({ unit: fc.constantFrom("a", "B", '"', ",", "é"), minLength: 1 });
  fc.assert(
    fc.property(fc.array(value), (values) => {
      expect(commaList(values.map((one) => `"${one.replaceAll('"', '""')}"`).join(", "))).toEqual(
        values.length === 0 ? [""] : values,
      );
      const plain = values.filter((one) => !/[",]/.test(one));
      expect(named(plain.join(","))).toEqual(plain);
    }),
  );
});
