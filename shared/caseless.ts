/** Compares texts without case, in filters, in the search and for unique values. */

/**
 * Equal for all spellings of a text: upper or lower case, ß or SS, both lower-case sigmas, marks composed or decomposed (as macOS types
 * them). It decomposes first, since a mark can change the upper case of its letter.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** The form of a name for comparisons, without outer blanks. Rows and keys hold it in lower case. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
