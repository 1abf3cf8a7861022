/** Tests that the text of the map pins is correct JSON. The service writes it without JSON.stringify, because this is faster. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { PinText, pinEnd, pinPieces } from "#shared/prospects/list/pins.ts";
import { plainRow } from "../company-index/plain-rows.ts";
import { sized } from "../harness/tier.ts";

const degrees = (most: number) =>
  fc.oneof(
    fc.double({ min: -most, max: most, noNaN: true }),
    fc.tuple(fc.integer({ min: -most * 1e7, max: most * 1e7 }), fc.integer({ min: 0, max: 7 })).map(
      // Coordinates with up to seven decimals.
      ([whole, decimals]) => Math.round(whole / 10 ** decimals) / 10 ** (7 - decimals),
    ),
  );

test("the text is right for any ids and coordinates, for one pin and for many pins", { tags: "sized" }, () => {
  const id = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
  const pin = fc.record({ id, lat: degrees(90), lng: degrees(180) });
  fc.assert(
    fc.property(fc.array(pin, { minLength: 1, maxLength: 20 }), (pins) => {
      const end = pinEnd('"#9CA3AF"');
      const text = new PinText();
      text.begin("[");
      for (const { id, lat, lng } of pins) text.add(id, lat, lng, end);
      // Adding 0 turns negative zeros of the expected pins into 0, because the service writes 0 for them, as JSON.stringify does.
      const expected = pins.map(({ id, lat, lng }) => ({ id, lat: lat + 0, lng: lng + 0, statusColor: "#9CA3AF" }));
      expect(JSON.parse(`${Buffer.from(text.finish()).toString()}]`)).toEqual(expected);
    }),
    { numRuns: sized({ short: 300, wide: 2_000 }) },
  );
});

test("200 000 unflushed rows are all shown as pins, although a call in JavaScript cannot have so many arguments", () => {
  const row = plainRow({ id: 0, lat: 39.5, lng: -104.5 });
  const unflushed = Array.from({ length: 200_000 }, (_, i) => ({ ...row, id: i + 1 }));
  const end = pinEnd('"#9CA3AF"');
  const text = Array.from(
    pinPieces({ segments: [], unflushed }, () => end),
    (piece) => Buffer.from(piece).toString(),
  );
  const pins = JSON.parse(text.join(""));
  expect(pins).toHaveLength(200_000);
  expect(pins.at(-1)).toEqual({ id: 200_000, lat: 39.5, lng: -104.5, statusColor: "#9CA3AF" });
  expect([...pinPieces({ segments: [], unflushed: [] }, () => end)]).toEqual(["[]"]);
});
