/** Forms of strings that can be compared case-insensitively. */
import { singleSpaced } from "#shared/blank.ts";

/**
 * Two strings have the same result if they differ only in case, in ß and SS, in the two lower-case sigmas, or in composed and decomposed
 * accents. The value is decomposed first, because the upper case of a composed letter can differ.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** The form in which names of statuses, tags, cities and users are compared and are part of rows and keys: in lower case, single-spaced. */
export const folded = (value: string): string => caseless(singleSpaced(value)).toLowerCase();
