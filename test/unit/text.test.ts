/** Laws of the shared scalars: what is accepted is stored and given back as it came; everything else is told why. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { degrees, Email, HexColor, Id, InstantInput, PathId, text } from "#shared/schema.ts";

const accepts = (schema: z.ZodMiniType, value: unknown): boolean => z.safeParse(schema, value).success;

test("text is counted in code points and comes back unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (value) => {
      const parsed = z.safeParse(text(10), value);
      expect(parsed.success).toBe([...value].length <= 10 && value.isWellFormed());
      if (parsed.success) expect(parsed.data).toBe(value);
    }),
    { numRuns: 2_000 },
  );
  expect(accepts(text(1), "\ud800")).toBe(false);
  expect(accepts(text(1), "😀")).toBe(true);
});

test.each([0, -1, 1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, "1", null, true, [1]])("%j is no id", (value) => {
  expect(accepts(Id, value)).toBe(false);
});

test.each(["0", "-1", "1.0", "1e3", "0x10", " 1", "1 ", "9007199254740992", "01", "", "١", "1/2"])(
  "%j is no id in a path",
  (value) => {
    expect(accepts(PathId, value)).toBe(false);
  },
);

test.each(["a", "a@", "@b.de", "a@b", "a b@c.de", "a@b..de", `${"x".repeat(250)}@b.de`])(
  "%j is no e-mail address",
  (value) => {
    expect(accepts(Email, value)).toBe(false);
  },
);

test.each([
  "2026-02-30",
  "2026-13-01",
  "26-01-01",
  "2026-01-01T24:00:00Z",
  "2026-01-01T10:60:00Z",
  "now",
  "1767225600",
])("%j is no instant", (value) => {
  expect(accepts(InstantInput, value)).toBe(false);
});

test.each([
  ["2026-01-01", "2026-01-01T00:00:00.000Z"],
  ["2026-01-01T10:00:00+02:00", "2026-01-01T08:00:00.000Z"],
  ["2026-01-01T10:00:00", "2026-01-01T10:00:00.000Z"],
  ["2026-01-01T10:00:00.123456Z", "2026-01-01T10:00:00.123Z"],
])("%j is the instant %j", (value, instant) => {
  expect(z.parse(InstantInput, value)).toBe(instant);
});

test.each(["red", "#fff", "#12345", "#12345g", "#1234567"])("%j is no colour", (value) => {
  expect(accepts(HexColor, value)).toBe(false);
});

test("degrees keep their value within a nanodegree and end at their limits", () => {
  fc.assert(
    fc.property(fc.double(), (value) => {
      const parsed = z.safeParse(degrees(90), value);
      expect(parsed.success).toBe(value >= -90 && value <= 90);
      if (!parsed.success) return;
      expect(Math.abs(parsed.data - value)).toBeLessThan(1e-9);
      expect(parsed.data === 0 || Math.abs(parsed.data) >= 1e-9).toBe(true);
      expect(Object.is(parsed.data, -0)).toBe(false);
    }),
  );
});

describe("custom fields", () => {
  test("any small JSON object comes back as it was sent", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ stringUnit: "grapheme" }), { maxKeys: 20 }),
        (value) => {
          const sent: unknown = JSON.parse(JSON.stringify(value));
          expect(z.parse(CustomFields, sent)).toBe(sent);
        },
      ),
    );
  });

  test("keys such as __proto__ are plain data", () => {
    const sent: unknown = JSON.parse('{"__proto__":{"admin":true},"constructor":1}');
    expect(JSON.stringify(z.parse(CustomFields, sent))).toBe('{"__proto__":{"admin":true},"constructor":1}');
  });

  const nested = (depth: number): unknown => JSON.parse(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`);
  test.each<[string, unknown]>([
    ["a list", []],
    ["null", null],
    ["text", "x"],
    ["201 keys", Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, i]))],
    ["33 KB", { a: "x".repeat(33 * 1024) }],
    ["a lone surrogate", { a: "\udc00" }],
    ["a lone surrogate in a key", { "\ud800": 1 }],
    ["10 000 levels", nested(10_000)],
  ])("%s is refused", (_, value) => {
    expect(accepts(CustomFields, value)).toBe(false);
  });

  test("an escaped backslash before 'ud800' is no surrogate", () => {
    expect(accepts(CustomFields, { a: "\\ud800" })).toBe(true);
  });
});
