/** Compares texts case-insensitively, in filters, in the search and for unique values. */

/**
 * Returns the case-folded text, which is equal for all spellings: upper and lower case, ß and SS, both lower-case sigmas, composed and
 * decomposed accents. The text is decomposed first, because a letter may have another upper case with an accent than without one.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** Returns the case-folded name without outer spaces, in lower case, because the stored rows and keys hold this form. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
