/** Schemas of single values, for requests, stored rows and the OpenAPI document. */
import * as z from "zod/mini";
import { isBlank } from "#shared/blank.ts";
import * as limits from "#shared/limits.ts";

export function named<S extends z.ZodMiniType>(id: string, schema: S, description?: string): S {
  z.globalRegistry.add(schema, description === undefined ? { id } : { id, description });
  return schema;
}

/** A page of a list with a cursor. `nextCursor` is null on the last page. */
export const cursorPage = <S extends z.ZodMiniType>(id: string, item: S, description: string) =>
  named(id, z.object({ items: z.array(item), nextCursor: z.nullable(z.string()) }), description);

export const Bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);

/** Unique in the whole service. */
export const Id = z.int().check(z.minimum(1));

/** A value for the option `error` of a zod schema: a wrong format gets this message. Other faults keep the message of zod. */
export const malformed =
  (message: string) =>
  ({ code }: { readonly code: string }): string | undefined =>
    code === "invalid_format" ? message : undefined;

/** An id as a text, for example in a path. `Number` alone would also accept `1e3`, `0x10` and ` 1`. */
export const PathId = z.pipe(
  z.string().check(z.regex(/^[1-9][0-9]{0,15}$/, "must be a positive integer")),
  z.pipe(z.transform(Number), z.int().check(z.minimum(1))),
);

const digits = (message: string) => z.string().check(z.regex(/^[0-9]+$/, message));

export const PositiveInteger = z.pipe(
  digits("must be a positive integer"),
  z.pipe(z.transform(Number), z.int().check(z.minimum(1))),
);

export const PageSize = z.pipe(
  digits("must be a positive integer"),
  z.pipe(
    z.transform((value: string) => Math.min(Number(value), limits.pageSizeMax)),
    z.int().check(z.minimum(1)),
  ),
);

export const Flag = z.pipe(
  z.enum(["true", "false"]),
  z.transform((value) => value === "true"),
);

/** The query parameter with the id after which a page of a list begins. It is 0 for the first page. */
export const AfterId = z.pipe(digits("must be an id"), z.pipe(z.transform(Number), z.int()));

/** The lengths are in code points, as in JSON Schema. Lone surrogates are rejected, because a response in UTF-8 cannot contain them. */
export function text(max: number, min = 0) {
  return z.string().check(
    z.refine((value) => value.isWellFormed(), { error: "must be well-formed Unicode", abort: true }),
    z.refine((value) => codePoints(value) <= max, { error: `must have at most ${max} characters` }),
    z.refine((value) => codePoints(value) >= min, {
      error: `must have at least ${min} ${min === 1 ? "character" : "characters"}`,
    }),
    z.meta(min > 0 ? { minLength: min, maxLength: max } : { maxLength: max }),
  );
}

/** A text with a character that is not blank. A blank text gets the message of a missing field. */
export const requiredText = (max: number) =>
  text(max, 1).check(z.refine((value) => value === "" || !isBlank(value), { error: "is required" }));

/** For a field that may be null: a blank text counts as null. */
export const orNull = <Output>(schema: z.ZodMiniType<Output, string>) =>
  z.pipe(
    z.transform((value: string | null) => (isBlankText(value) ? null : value)),
    z.nullable(schema),
  );

/** For a field with a default: a blank text counts as if it were not sent. */
export const unlessBlank = <Output>(schema: z.ZodMiniType<Output, string | null | undefined>) =>
  z.optional(
    z.pipe(
      z.transform((value: string | null | undefined) => (isBlankText(value) ? undefined : value)),
      z.optional(schema),
    ),
  );

const isBlankText = (value: unknown): boolean => typeof value === "string" && isBlank(value);

/** A name that users see: at least one code point is visible on a page. */
export const label = (max: number, min = 1) =>
  text(max, min).check(
    z.refine((value) => value === "" || hasVisible(value), { error: "must have a visible character" }),
  );

/** Blanks, control and format characters are not visible. */
export const hasVisible = (value: string): boolean => /[^\p{Cc}\p{Cf}\p{Z}]/u.test(value);

export function codePoints(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

export const atMost = (max: number) => z.maxLength(max, `must have at most ${max} characters`);

/**
 * A dot-atom (RFC 5322), `@`, and a host name with at least one dot. Quoted local parts and IP addresses are not accepted. No label begins
 * or ends with a hyphen. The last label has only letters, or is a Punycode label (RFC 5890).
 */
const mailbox =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*\.)+(?:[A-Za-z]{2,}|[Xx][Nn]--[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*)$/;

export const Email = z
  .email({ pattern: mailbox, error: malformed("must be a valid e-mail address") })
  .check(atMost(limits.email));

/** A time in the API's format: RFC 3339 in UTC with milliseconds. */
export const Timestamp = z.iso.datetime({ precision: 3 });
export type Timestamp = z.infer<typeof Timestamp>;

export const HexColor = z.string().check(z.regex(/^#[0-9a-fA-F]{6}$/, "must be a colour such as #1D4ED8"));

/** Latitude or longitude in degrees. A value closer to 0 than 1e-9 becomes 0, because DynamoDB cannot store numbers below 1e-130. */
export const degrees = (limit: 90 | 180, shown?: "withoutValue") =>
  z.pipe(
    coordinate(limit, shown),
    z.transform((value) => (Math.abs(value) < 1e-9 ? 0 : value)),
  );

/** The message hints at exchanged coordinates or metres. With `withoutValue`, it omits the value, because messages of CSV rows add it. */
export function coordinate(limit: 90 | 180, shown?: "withoutValue") {
  const name = limit === 90 ? "a latitude from -90 to 90 degrees" : "a longitude from -180 to 180 degrees";
  const error = ({ input }: { readonly input?: unknown }): string => {
    const size = Math.abs(Number(input));
    const cause = size <= 180 ? " (a longitude may be in its place)" : size > 360 ? " (metres are not accepted)" : "";
    return `must be ${name}${cause}${shown === undefined ? `, and is ${input}` : ""}`;
  };
  return z.number().check(z.minimum(-limit, { error }), z.maximum(limit, { error }));
}

/** Default descriptions of fields in docs/openapi.json, by name. */
export const recordTexts = {
  id: "Unique in the whole service.",
  companyId: "The company that owns the record.",
  createdAt: "UTC, with milliseconds.",
  updatedAt: "UTC, with milliseconds. A write that changes nothing does not change it.",
} as const;
export const VALUE_TEXT = "The label. Unique in the company without case; no comma and no semicolon.";
export const COLOR_TEXT = "Hexadecimal, such as `#1D4ED8`.";
export const LAT_TEXT = "Degrees, -90 to 90.";
export const LNG_TEXT = "Degrees, -180 to 180.";
