/** Tests how the console writes the place that the map shows into the URL, and reads it from there. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cameraIn, withCamera } from "../../console/src/map/camera.ts";

const rounded = (most: number, least = -most) =>
  fc.integer({ min: least * 100_000, max: most * 100_000 }).map((value) => value / 100_000);

test("a place in the URL is read as it was written, and the other parameters stay", () => {
  fc.assert(
    fc.property(rounded(180), rounded(90), rounded(24, 0), fc.string(), (lng, lat, zoom, search) => {
      const before = new URLSearchParams({ search, at: "0,0,1" }).toString();
      const query = withCamera(before, [lng, lat, zoom].map((value) => value.toFixed(5)).join());
      expect(cameraIn(`?${query}`)).toEqual({ center: [lng, lat], zoom });
      expect(new URLSearchParams(query).get("search")).toBe(search);
      expect(withCamera(query, undefined)).toBe(new URLSearchParams({ search }).toString());
    }),
  );
});

test.for(["", "at=", "at=1,2", "at=1,2,x", "at=181,0,5", "at=0,91,5", "at=0,0,99", "at=0,0,-1", "at=1e2,0,5", "at=,,"])(
  "the query %j has no place",
  (query) => expect(cameraIn(query)).toBeUndefined(),
);
