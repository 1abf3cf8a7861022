/** Forms of strings that can be compared case-insensitively. */

/**
 * Two strings have the same result if they differ only in case, in ß and SS, in the two lower-case sigmas, or in composed and decomposed
 * accents. The value is decomposed first, because the upper case of a composed letter can differ.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** Returns the form of tags and cities in stored rows and keys: in lower case, and without outer spaces. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
