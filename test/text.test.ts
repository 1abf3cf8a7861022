/** Tests the schemas of single values such as text, e-mail addresses, ids, times and colours. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { validate } from "#shared/http/validate.ts";
import { InstantInput } from "#shared/instant.ts";
import { CustomFields } from "#shared/prospects/custom-fields.ts";
import { dateBound } from "#shared/prospects/filter.ts";
import { degrees, Email, HexColor, PathId, text } from "#shared/schema.ts";
import { WebUrl } from "#shared/webhooks/subscriptions/schema.ts";

const accepts = (schema: z.ZodMiniType, value: unknown): boolean => z.safeParse(schema, value).success;

test("text is counted in code points and returns unchanged", () => {
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

test.each(["0", "-1", "1.0", "1e3", "0x10", " 1", "1 ", "9007199254740992", "01", "", "١", "1/2"])(
  "%j is no id in a path",
  (value) => {
    expect(accepts(PathId, value)).toBe(false);
  },
);

test.each([
  [Email, `${"x".repeat(250)}@b.de`, "too_big", "must have at most 254 characters"],
  [Email, "nobody", "invalid_format", "must be a valid e-mail address"],
  [Email, 7, "invalid_type", "must be a text"],
  [WebUrl, `https://b.de/${"x".repeat(2_048)}`, "too_big", "must have at most 2048 characters"],
  [WebUrl, "nowhere", "invalid_format", "must be a valid URL"],
  [WebUrl, undefined, "invalid_type", "is required"],
])("each kind of wrong value has its own code and message, case %#", (schema, value, code, message) => {
  const fault = expect.objectContaining({ code, message });
  expect(() => validate("body", schema, value)).toThrow(expect.objectContaining({ faults: [fault] }));
});

/** The schemas that accept a time or a day. */
const takers = [InstantInput, dateBound("start"), dateBound("end")];

test.each([
  ...["2026-02-30", "2026-02-30T10:00Z", "2025-02-29T10:00+0100", "2026-13-01", "2026-00-10", "26-01-01"],
  ...["2026-01-01T24:00:00Z", "2026-01-01T24:00", "2026-01-01T10:60:00Z", "2026-06-30T23:59:60Z"],
  ...["2026-01-01T10:00+24:00", "2026-01-01T10:00+2400", "2026-01-01T10:00-23:60", "2026-01-01T10:00+06"],
  ...["2026-01-01T10:00.5Z", "2026-01-01T10Z", "2026-01-01T", "2026-01-01Z", "2026-01-01+06:00"],
  ...["2026-01-01 10:00Z", "20260101T100000Z", "now", "1767225600", ""],
])("%j is no instant", (value) => {
  expect(takers.map((schema) => accepts(schema, value))).toEqual([false, false, false]);
});

test.each([
  ["2026-01-01T10:00:00+02:00", "2026-01-01T08:00:00.000Z"],
  ["2026-01-01T10:00:00", "2026-01-01T10:00:00.000Z"],
  ["2026-01-01T10:00:00.123456Z", "2026-01-01T10:00:00.123Z"],
  ["2026-01-01T10:00:00.9999-0030", "2026-01-01T10:30:00.999Z"],
  ["2026-12-01T09:00", "2026-12-01T09:00:00.000Z"],
  ["2026-12-01T09:00Z", "2026-12-01T09:00:00.000Z"],
  ["2026-12-01T09:00-06:00", "2026-12-01T15:00:00.000Z"],
  ["2026-12-01T09:00+0600", "2026-12-01T03:00:00.000Z"],
  ["2026-12-01T09:00:30+0600", "2026-12-01T03:00:30.000Z"],
  ["2026-01-01T00:00+23:59", "2025-12-31T00:01:00.000Z"],
  ["2024-02-29T00:00-2359", "2024-02-29T23:59:00.000Z"],
])("%j is the instant %j", (value, instant) => {
  expect(takers.map((schema) => z.parse(schema, value))).toEqual([instant, Date.parse(instant), Date.parse(instant)]);
});

test("a date without a time means the first instant of the day, or its last instant at the end of a range", () => {
  const [first, last] = ["2026-01-01T00:00:00.000Z", "2026-01-01T23:59:59.999Z"];
  expect(takers.map((schema) => z.parse(schema, "2026-01-01"))).toEqual([first, Date.parse(first), Date.parse(last)]);
});

test("all spellings of an instant give the same millisecond", () => {
  const offset = fc.integer({ min: -1_439, max: 1_439 });
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true }),
      offset,
      (at, minutes) => {
        const local = new Date(at.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const size = Math.abs(minutes);
        const [hh, mm] = [Math.floor(size / 60), size % 60].map((part) => String(part).padStart(2, "0"));
        for (const colon of ["", ":"]) {
          const written = `${local}${minutes < 0 ? "-" : "+"}${hh}${colon}${mm}`;
          expect(z.parse(InstantInput, written)).toBe(at.toISOString());
          expect(z.parse(dateBound("end"), written)).toBe(at.getTime());
        }
      },
    ),
  );
});

test.each(["red", "#fff", "#12345", "#12345g", "#1234567"])("%j is no colour", (value) => {
  expect(accepts(HexColor, value)).toBe(false);
});

test("degrees keep their value to within a nanodegree, and stay within their limits", () => {
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
  test("any small JSON object returns unchanged", () => {
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
    ["a lone surrogate", { a: "\udc00" }],
    ["a lone surrogate in a key", { "\ud800": 1 }],
    ["10 000 levels", nested(10_000)],
  ])("%s is refused", (_, value) => {
    expect(accepts(CustomFields, value)).toBe(false);
  });

  test("an escaped backslash before 'ud800' is not a surrogate", () => {
    expect(accepts(CustomFields, { a: "\\ud800" })).toBe(true);
  });
});

const isAtom = (text: string): boolean =>
  text !== "" && [...text].every((it) => /[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]/.test(it));
const isLabel = (text: string): boolean => /^[A-Za-z0-9-]+$/.test(text) && !text.startsWith("-") && !text.endsWith("-");
function isAddress(text: string): boolean {
  const [local = "", host, ...more] = text.split("@");
  if (host === undefined || more.length > 0 || !local.split(".").every(isAtom)) return false;
  const labels = host.split(".");
  const last = labels.at(-1) ?? "";
  const isWord = last.length > 1 && /^[A-Za-z]+$/.test(last);
  const isPunycode = last.toLowerCase().startsWith("xn--") && isLabel(last.slice(4));
  return labels.length > 1 && labels.every(isLabel) && (isWord || isPunycode);
}
const isAccepted = (text: string): boolean => Email.safeParse(text).success;

test("an address is accepted exactly if its atoms and labels are valid", () => {
  const piece = fc.constantFrom(".", "@", "-", "--", "a", "B7", "xn--", "XN--p1ai", "com", "c", "é", " ", "_", "+");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      for (const text of [pieces.join(""), `a@${pieces.join("")}`, `a@b.${pieces.join("")}`]) {
        expect([text, isAccepted(text)]).toEqual([text, isAddress(text)]);
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ...["ann@example.xn--p1ai", "ann@example.XN--P1AI", "ann@xn--e1afmkfd.xn--80akhbyknj4f", "ann@example.xn--a-b"],
  ...["ann@a--b.com", "a/b=c@d.co", "a!#$&*@b.co", "{a}~^`|?@b.co", "o'neil+tag@mail.example.com"],
])("%s is accepted", (text) => expect([isAccepted(text), isAddress(text)]).toEqual([true, true]));

test.each([
  ...["ann@example.xn--", "ann@example.xn---a", "ann@example.xn--a-", "ann@example-.com", "ann@-example.com"],
  ...["ann@example.c", "ann@example.c0", "ann@com", "a..b@example.com", ".a@b.co", "a.@b.co", " a@b.co", "a@b.co "],
  ...["a@@b.co", "@b.de", "a@", '"a b"@c.co', "<a@b.co>", "a@[127.0.0.1]"],
])("%s is refused", (text) => expect([isAccepted(text), isAddress(text)]).toEqual([false, false]));

test("a megabyte of labels is refused in linear time (quadratic time would take hours)", () => {
  for (const text of ["a@".padEnd(1e6, "a"), "a@".padEnd(1e6, "a-"), "a@".padEnd(1e6, "a."), "a@".padEnd(1e6, "-")]) {
    expect(isAccepted(text)).toBe(false);
  }
});
