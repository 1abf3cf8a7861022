/** Converts strings to forms that can be compared case-insensitively, in filters, in the search and for unique values. */

/**
 * Returns the case-folded string. Two strings have the same result if they differ only in case, in ß and SS, in the two lower-case sigmas,
 * or in composed and decomposed accents. The value is decomposed first, because the upper case of a composed letter can differ from that of
 * its decomposed form.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/**
 * Returns the case-folded value in lower case and without outer spaces. Stored rows and keys contain values in this form, such as tags and
 * cities.
 */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
