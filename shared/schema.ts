/** The schema language of the service and its shared scalars. One schema is validator, type, stored shape and document. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";

/** Registers a schema as a component of the OpenAPI document; changes nothing at run time. */
export function named<S extends z.ZodMiniType>(id: string, schema: S, description?: string): S {
  z.globalRegistry.add(schema, description === undefined ? { id } : { id, description });
  return schema;
}

/** Bytes as the table gives them. */
export const Bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);

/** A positive integer below 2^53, unique across the whole service. */
export const Id = z.int().check(z.minimum(1));

/** A positive integer in a path: digits only, so that `1e3`, `0x10` and ` 1` are no ids. */
export const PathId = z.pipe(
  z.string().check(z.regex(/^[1-9][0-9]{0,15}$/, "must be a positive integer")),
  z.pipe(z.transform(Number), z.int().check(z.minimum(1))),
);

const digits = (message: string) => z.string().check(z.regex(/^[0-9]+$/, message));

/** The number of a page in a query. */
export const PositiveInteger = z.pipe(
  digits("must be a positive integer"),
  z.pipe(z.transform(Number), z.int().check(z.minimum(1))),
);

/** How many records an answer is to hold, in a query: any positive integer, cut to the maximum. */
export const PageSize = z.pipe(
  digits("must be a positive integer"),
  z.pipe(
    z.transform((value: string) => Math.min(Number(value), limits.pageSizeMax)),
    z.int().check(z.minimum(1)),
  ),
);

/** Yes or no, in a query. */
export const Flag = z.pipe(
  z.enum(["true", "false"]),
  z.transform((value) => value === "true"),
);

/** The id after which a list goes on, in a query; 0 begins it. */
export const AfterId = z.pipe(digits("must be an id"), z.pipe(z.transform(Number), z.int()));

/**
 * Text of `min` to `max` code points, as JSON Schema counts. Lone surrogates are refused: UTF-8 cannot hold them, so
 * they could not be given back as they came.
 */
export function text(max: number, min = 0) {
  return z.string().check(
    z.refine((value) => value.isWellFormed(), { error: "must be well-formed Unicode", abort: true }),
    z.refine((value) => codePoints(value) <= max, { error: `must have at most ${max} characters` }),
    z.refine((value) => codePoints(value) >= min, { error: `must have at least ${min} characters` }),
    z.meta(min > 0 ? { minLength: min, maxLength: max } : { maxLength: max }),
  );
}

function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

/** Says what is wrong with a text's form, and leaves what is no text or too long to the words of its own. */
const malformed =
  (message: string) =>
  ({ code }: { readonly code: string }): string | undefined =>
    code === "invalid_format" ? message : undefined;

const atMost = (max: number) => z.maxLength(max, `must have at most ${max} characters`);

/** A dot-atom of RFC 5322 at a host that has a domain above it. Quoted local parts and literal addresses are refused. */
const mailbox =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/;

export const Email = z
  .email({ pattern: mailbox, error: malformed("must be a valid e-mail address") })
  .check(atMost(limits.email));

export const WebUrl = z.url({ error: malformed("must be a valid URL") }).check(atMost(limits.url));

/** RFC 3339 instant as the service writes it: UTC with milliseconds. */
export const Timestamp = z.iso.datetime({ precision: 3 });
export type Timestamp = z.infer<typeof Timestamp>;

const [day, time] = [z.regexes.date, z.regexes.time({})].map(({ source }) => source.slice(1, -1));

/**
 * A time or a day as ISO 8601 writes them: seconds may be left out, an offset may do without its colon, and without one the
 * time is UTC. Days that do not exist, the hour 24 and leap seconds are refused.
 */
export const IsoTime = z
  .string()
  .check(
    z.regex(
      new RegExp(`^${day}(?:T${time}(?:Z|[+-](?:[01]\\d|2[0-3]):?[0-5]\\d)?)?$`),
      "must be an ISO 8601 date or time",
    ),
  );

export const isDay = (value: string): boolean => value.length === "2026-06-01".length;

/** Milliseconds since the epoch of what `IsoTime` takes; a day is its first instant. Fractions below one are cut off. */
export function instantOf(value: string): number {
  if (isDay(value)) return Date.parse(value);
  const written = value.replace(/([+-]\d\d)(\d\d)$/, "$1:$2");
  return Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(written) ? written : `${written}Z`);
}

/** A time or day from outside, kept as the instant that it names. */
export const InstantInput = z.pipe(
  IsoTime,
  z.pipe(
    z.transform((value: string): Timestamp => new Date(instantOf(value)).toISOString()),
    // An offset can push an instant out of the years that have four digits.
    z.iso.datetime({ precision: 3, error: "must lie in the years 0000 to 9999" }),
  ),
);

export const HexColor = z.string().check(z.regex(/^#[0-9a-fA-F]{6}$/, "must be a colour such as #1D4ED8"));

/**
 * How a status or tag is called. Commas and semicolons separate values in filters and CSV cells. The limit holds for the
 * normalised value too: it is part of a key, which ends at 1 024 bytes, and some symbols become three by that.
 */
export const DisplayValue = z.pipe(
  text(limits.displayValue, 1).check(z.trim()),
  text(limits.displayValue, 1).check(
    z.regex(/^[^,;]*$/, "must not hold a comma or semicolon"),
    z.refine((value) => codePoints(value.normalize("NFC")) <= limits.displayValue, {
      error: `must have at most ${limits.displayValue} characters`,
    }),
  ),
);

/** Latitude or longitude in degrees. Magnitudes below a nanodegree are stored as 0: the table's numbers end at 1e-130. */
export function degrees(limit: number) {
  return z.pipe(
    z.number().check(z.minimum(-limit), z.maximum(limit)),
    z.transform((value) => (Math.abs(value) < 1e-9 ? 0 : value)),
  );
}

/** Texts of docs/openapi.json about these scalars. `recordTexts` holds for every schema that has a field of the name. */
export const recordTexts = {
  id: "Unique in the whole service.",
  companyId: "The company that owns the record.",
  createdAt: "UTC, with milliseconds.",
  updatedAt: "UTC, with milliseconds. A write that changes nothing does not change it.",
} as const;
export const INSTANT_TEXT =
  "ISO 8601; without an offset it is UTC, without a time it is the first instant of that UTC day.";
export const VALUE_TEXT = "The label. Unique in the company without case; no comma and no semicolon.";
export const COLOR_TEXT = "Hexadecimal, such as `#1D4ED8`.";
export const LAT_TEXT = "Degrees, -90 to 90.";
export const LNG_TEXT = "Degrees, -180 to 180.";
