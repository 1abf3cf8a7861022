/** The schemas of times and days in requests. */
import * as z from "zod/mini";
import type { Timestamp } from "#shared/schema.ts";

// `z.regexes` would add all patterns of zod to each bundle (6 KB).
const [day, time] = [z.iso.date(), z.iso.time()].map(({ def }) => def.pattern?.source.slice(1, -1));

/**
 * A time in ISO 8601. Seconds and the colon of an offset are optional. A time without an offset is UTC. Days that do not exist, the hour 24
 * and leap seconds are rejected.
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

/** Converts to milliseconds since 1970. A day means 00:00 UTC. Fractions of a millisecond are ignored. */
export function instantOf(value: string): number {
  if (isDay(value)) return Date.parse(value);
  const written = value.replace(/([+-]\d\d)(\d\d)$/, "$1:$2");
  return Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(written) ? written : `${written}Z`);
}

/** The output is the time as the API formats it. */
export const InstantInput = z.pipe(
  IsoTime,
  z.pipe(
    z.transform((value: string): Timestamp => new Date(instantOf(value)).toISOString()),
    // The conversion to UTC can give the year -1 or 10000.
    z.iso.datetime({ precision: 3, error: "must lie in the years 0000 to 9999" }),
  ),
);

export const INSTANT_TEXT =
  "ISO 8601; without an offset it is UTC, without a time it is the first instant of that UTC day.";
