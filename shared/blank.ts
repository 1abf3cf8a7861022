/** Tells whether a text is blank. A blank text counts as no value. */

const value = /[^\p{White_Space}\u200B\uFEFF]/u;

/** True for an empty text, and for white space, zero-width spaces and byte order marks alone. */
export function isBlank(text: string): boolean {
  return !value.test(text);
}
