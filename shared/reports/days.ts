/** Converts between instants and the days of a time zone. */
import * as z from "zod/mini";
import { DAY_MS } from "#shared/clock.ts";

/** The offsets of time zones are multiples of a quarter of an hour, so all instants of a quarter are on the same day. */
const QUARTER_MS = 15 * 60_000;
const NAME_MAX = 64;

const formatOf = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat("en-US", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });

function isTimeZone(name: string): boolean {
  try {
    return formatOf(name).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export const TimeZone = z
  .string()
  .check(
    z.maxLength(NAME_MAX),
    z.refine(isTimeZone, { error: "must be the name of a time zone, such as America/Denver" }),
  );

export class DaysOfZone {
  readonly #format: Intl.DateTimeFormat;
  readonly #known = new Map<number, string>();
  readonly isUtc: boolean;

  constructor(timeZone: string) {
    this.#format = formatOf(timeZone);
    this.isUtc = this.#format.resolvedOptions().timeZone === "UTC";
  }

  dayOf(ms: number): string {
    if (this.isUtc) return new Date(ms).toISOString().slice(0, 10);
    const quarter = Math.floor(ms / QUARTER_MS);
    const known = this.#known.get(quarter);
    if (known !== undefined) return known;
    const parts = new Map(this.#format.formatToParts(ms).map(({ type, value }) => [type, value]));
    const day = `${parts.get("year")?.padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}`;
    this.#known.set(quarter, day);
    return day;
  }

  /** Returns the first instant of the day. A day up to 1 January 1970 counts as a day in UTC, because no activity is so old. */
  startOf(day: string): number {
    const utc = Date.parse(day);
    if (this.isUtc || utc < DAY_MS) return utc;
    // Searches the first quarter of an hour that is not on an earlier day.
    let [before, after] = [utc - DAY_MS, utc + DAY_MS];
    while (after - before > QUARTER_MS) {
      const middle = before + Math.floor((after - before) / 2 / QUARTER_MS) * QUARTER_MS;
      if (this.dayOf(middle) < day) before = middle;
      else after = middle;
    }
    return after;
  }

  /** Returns the last millisecond of the day. */
  endOf(day: string): number {
    const next = Date.parse(day) + DAY_MS;
    const isLastYear = day.startsWith("9999-12-31");
    return (isLastYear ? next : this.startOf(new Date(next).toISOString().slice(0, 10))) - 1;
  }
}
