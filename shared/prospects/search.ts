/** Full-text search: every word of the query must occur in some text of the prospect or in one of its notes. */
import * as z from "zod/mini";
import { caseless } from "#shared/caseless.ts";
import type { SearchWord } from "#shared/company-index/criteria.ts";
import { limits } from "#shared/limits.ts";
import { text } from "#shared/schema.ts";

/** The words compare as text without case: nothing in them is a wildcard. No word at all finds everything. */
export const Search = z.pipe(
  text(limits.search),
  z.transform((query): SearchWord[] =>
    query
      .split(/\s+/)
      .filter((word) => word !== "")
      // Where a word holds no letter, its digits are also looked for among a phone's.
      .map((word) => ({ text: caseless(word), digits: /\p{L}/u.test(word) ? "" : digitsOf(word) })),
  ),
);
export type Search = z.output<typeof Search>;

export const digitsOf = (value: string): string => value.replace(/[^0-9]/g, "");
