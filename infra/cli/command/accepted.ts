/** Schemas of values in options and settings. Each error says what is accepted and which value was given. */
import * as z from "zod/mini";

/** Maximum number of characters of a wrong value that an error message contains. */
const SHOWN = 100;

/** Returns a wrong value as an error message shows it. A text has quotes, so that an operator sees blanks at its ends. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`;
}

export const must = (what: string) => ({
  error: ({ input }: { readonly input?: unknown }): string => `must be ${what}, and not ${shown(input)}`,
});

const DECIMAL = /^\d{1,15}(?:\.\d{1,15})?$/;

/** Accepts a number, or decimal digits as text. Refuses an empty text, which JavaScript converts to 0. `what` is for the error message. */
export const numeric = (what: string, accepts: (value: number) => boolean) =>
  z.pipe(
    z.custom<number | string>(
      (value) =>
        (typeof value === "number" || (typeof value === "string" && DECIMAL.test(value))) && accepts(Number(value)),
      must(what),
    ),
    z.transform(Number),
  );

export const wholeNumber = (least: number, most: number) =>
  numeric(
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && value >= least && value <= most,
  );

export const numberFrom = (least: number, most: number) =>
  numeric(`a number from ${least} to ${most}`, (value) => value >= least && value <= most);

const matching = (pattern: RegExp, what: string) => z.string(must(what)).check(z.regex(pattern, must(what)));

export const CompanyId = z.pipe(matching(/^[1-9]\d{0,14}$/, "the id of a company"), z.transform(Number));

export const TableName = matching(/^[\w.-]{3,255}$/, "the name of a table");

const HTTP_URL = "a URL that begins with http:// or https://";
export const HttpUrl = z
  .string(must(HTTP_URL))
  .check(z.refine((text) => /^https?:\S+$/.test(text) && URL.canParse(text), must(HTTP_URL)));

export const textUpTo = (most: number) =>
  z
    .string()
    .check(
      z.refine(
        (text) => text !== "" && text.trim() === text && [...text].length <= most,
        must(`a text of 1 to ${most} characters without blanks at its ends`),
      ),
    );
