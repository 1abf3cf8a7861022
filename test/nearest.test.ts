/** Tests the function that finds the known name which a misspelt name probably means. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { nearestOf } from "#shared/nearest.ts";

test("one changed character of a name still finds it, without regard to case", () => {
  const name = fc.string({ unit: fc.constantFrom(..."abcdefgh"), minLength: 4, maxLength: 20 });
  fc.assert(
    fc.property(name, fc.nat(), (text, at) => {
      const place = at % text.length;
      for (const changed of [
        `${text.slice(0, place)}x${text.slice(place)}`,
        text.slice(0, place) + text.slice(place + 1),
      ]) {
        expect(nearestOf(changed.toUpperCase(), ["zzzzzzzzzzzz", text])).toBe(text);
      }
    }),
  );
});

test("a name that is not similar finds none, and the work is bounded", () => {
  expect(nearestOf("Sold", ["New", "Not Home"])).toBeUndefined();
  expect(nearestOf("", ["New"])).toBeUndefined();
  expect(nearestOf("?", ["."])).toBeUndefined();
  let taken = 0;
  function* names(): Generator<string> {
    for (;;) {
      taken++;
      yield "x".repeat(10_000);
    }
  }
  expect(nearestOf("y".repeat(1_000_000), names())).toBeUndefined();
  expect(taken).toBeLessThan(1_000);
});
