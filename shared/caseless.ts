/** Compares texts case-insensitively, in filters, in the search and for unique values. */

/**
 * The case-folded text, which is equal for all spellings of a text: upper and lower case, ß and SS, both lower-case sigmas, and composed or
 * decomposed marks (macOS types decomposed ones). The function decomposes first, because a mark can change the upper case of its letter.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** The case-folded name without outer spaces, for comparisons. Rows and keys hold this form in lower case. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
