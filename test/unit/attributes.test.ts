/** Law: values become what the SDK's own marshaller makes of them, and come back unchanged. */
import { marshall } from "@aws-sdk/util-dynamodb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attributeOf, attributesOf, itemOf, plainOf } from "#shared/db/attributes.ts";

const number = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ min: -1e15, max: 1e15, noNaN: true }),
  fc.constantFrom(0, 1e-7),
);
const name = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "pk", "S", "M", "toString"));
const valueWith = (names: fc.Arbitrary<string>) =>
  fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: "grapheme" }),
      number,
      fc.boolean(),
      fc.constant(null),
      fc.uint8Array(),
      fc.array(fc.string(), { minLength: 1 }).map((members) => new Set(members)),
      fc.array(fc.maxSafeInteger(), { minLength: 1 }).map((members) => new Set(members)),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.array(fc.tuple(names, tie("value")), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
    ),
  })).value;

/** As it goes over the wire. */
const wired = (found: unknown): unknown =>
  JSON.parse(
    JSON.stringify(found, (_, part: unknown) =>
      part instanceof Uint8Array ? Buffer.from(part).toString("base64") : part,
    ),
  );

describe("a value of any shape", () => {
  test("comes back unchanged", () => {
    fc.assert(
      fc.property(valueWith(name), (given) => {
        const shown = JSON.stringify(attributeOf(given));
        expect(plainOf(JSON.parse(shown))).toEqual(given);
      }),
    );
  });

  test("is what the SDK makes of it", () => {
    fc.assert(
      fc.property(valueWith(name.filter((text) => text !== "__proto__" && text !== "constructor")), (given) => {
        // The SDK loses fields of the one name and takes none of the other; and it has bytes where JSON has base64.
        expect(wired(attributesOf({ given }))).toEqual(wired(marshall({ given }, { removeUndefinedValues: true })));
      }),
    );
  });
});

test("what is undefined is left out, in lists and maps as well", () => {
  expect(attributesOf({ a: undefined, b: [1, undefined], c: { d: undefined } })).toEqual({
    b: { L: [{ N: "1" }] },
    c: { M: {} },
  });
});

test("a field may have the name of something that objects have: it stays a field", () => {
  const item = itemOf(JSON.parse('{"__proto__":{"M":{"isAdmin":{"BOOL":true}}}}'));
  expect(Object.keys(item)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(item)).toBe(Object.prototype);
  expect("isAdmin" in item).toBe(false);
});

test.each([
  ["a number that no double holds exactly", 2 ** 53],
  ["no number", Number.NaN],
  ["no finite number", Number.NEGATIVE_INFINITY],
  ["a function", () => 1],
  ["a date", new Date(0)],
  ["an empty set", new Set()],
  ["a mixed set", new Set([1, "a"])],
  ["a bigint", 1n],
])("%s is refused", (_, given) => {
  expect(() => attributeOf(given)).toThrow();
});
