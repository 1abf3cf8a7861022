/** The schemas of times and days in requests. */
import * as z from "zod/mini";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { Timestamp } from "#shared/schema.ts";

// The patterns are taken from schemas, because `z.regexes` would add all patterns of zod to each bundle (6 KB).
const [day, time] = [z.iso.date(), z.iso.time()].map(({ def }) => def.pattern?.source.slice(1, -1));

/** ISO 8601. Seconds, the offset and its colon are optional. No offset means UTC. Impossible days, hour 24 and leap seconds are refused. */
export const IsoTime = z
  .string()
  .check(
    z.regex(
      new RegExp(`^${day}(?:T${time}(?:Z|[+-](?:[01]\\d|2[0-3]):?[0-5]\\d)?)?$`),
      "must be an ISO 8601 date or time",
    ),
  );

export const isDay = (value: string): boolean => value.length === "2026-06-01".length;

/** Which instant a day without a time means: 00:00 UTC or its last millisecond. */
export type DayEdge = "start" | "end";

/** Converts a valid day or time to milliseconds since 1970. Fractions of a millisecond are ignored. */
export function instantOf(value: string, edge: DayEdge = "start"): number {
  if (isDay(value)) return Date.parse(value) + (edge === "end" ? DAY_MS - 1 : 0);
  const written = value.replace(/([+-]\d\d)(\d\d)$/, "$1:$2");
  return Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(written) ? written : `${written}Z`);
}

/** Returns a schema that converts a day or time to the API's format. */
const instantInput = (edge: DayEdge) =>
  z.pipe(
    IsoTime,
    z.pipe(
      z.transform((value: string): Timestamp => iso(instantOf(value, edge))),
      // The conversion to UTC can give the year -1 or 10000.
      z.iso.datetime({ precision: 3, error: "must lie in the years 0000 to 9999" }),
    ),
  );

export const InstantInput = /* @__PURE__ */ instantInput("start");
export const LastInstantInput = /* @__PURE__ */ instantInput("end");

export const INSTANT_TEXT =
  "ISO 8601; without an offset it is UTC, without a time it is the first instant of that UTC day.";
