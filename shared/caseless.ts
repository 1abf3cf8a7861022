/** What "without case" means, wherever texts are compared: in filters, in the search and in what must be unique. */

/**
 * The same for all writings of a text: capitals or not, ß or SS, a sigma at the end of a word or inside, letters with their
 * marks in one code point or apart (as macOS types them). Taken apart first, since a mark can change its letter's capital.
 */
export const caseless = (value: string): string => value.normalize("NFD").toLowerCase().toUpperCase().normalize("NFC");

/** A name as it compares, outer blanks left out. In lower case, for so it stands in rows and keys. */
export const folded = (value: string): string => caseless(value.trim()).toLowerCase();
