/** Full-text search: every word of the query must occur in some text of the prospect or in one of its notes. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { text } from "#shared/schema.ts";

/** A word of the query. Where it holds no letter, its digits are also looked for among a phone's. */
interface Token {
  readonly text: string;
  readonly digits: string;
}

export const Search = z.pipe(
  text(limits.search),
  z.transform((query): Token[] =>
    query
      .split(/\s+/)
      .filter((word) => word !== "")
      .map((word) => ({ text: caseless(word), digits: /\p{L}/u.test(word) ? "" : digitsOf(word) })),
  ),
);
export type Search = z.output<typeof Search>;

/** Words compare as text without case: nothing in them is a wildcard. No word at all finds everything. */
export function searchPredicate(search: Search): (prospect: StoredProspect, notes: readonly string[]) => boolean {
  return (prospect, notes) => {
    const { phoneNumber, secondaryPhoneNumber, address } = prospect;
    const phones = [phoneNumber, secondaryPhoneNumber];
    const places = address === null ? [] : addressParts.map((part) => address[part]);
    const words = joined([prospect.name, ...phones, prospect.emailAddress, ...places, ...notes].map(orEmpty));
    const all = caseless(words);
    const phoneDigits = joined(phones.map((phone) => digitsOf(orEmpty(phone))));
    return search.every(({ text, digits }) => all.includes(text) || (digits !== "" && phoneDigits.includes(digits)));
  };
}

const addressParts = ["address1", "address2", "city", "state", "zip", "formattedAddress"] as const;

/** No word holds a line break, so none is found across two texts. */
const joined = (texts: readonly string[]): string => texts.join("\n");

const orEmpty = (value: string | null): string => value ?? "";

const digitsOf = (value: string): string => value.replace(/[^0-9]/g, "");

/** Lower and then upper case, so that a letter's form at the end of a word (a final sigma) makes no difference. */
const caseless = (value: string): string => value.toLowerCase().toUpperCase();
