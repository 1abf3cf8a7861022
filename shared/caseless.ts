/** Compares texts case-insensitively, in filters, in the search and for unique values. */

/**
 * Returns the case-folded text. It is equal for all spellings of a text: upper and lower case, ß and SS, both lower-case sigmas, composed
 * and decomposed accents. The text is decomposed first, because the upper case of a letter can depend on its accent.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** Returns the case-folded name without outer spaces, in lower case. Stored rows and keys contain names in this form. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
