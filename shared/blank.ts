/** Blank characters are Unicode White_Space, and U+200B and U+FEFF, which copied texts often contain and nobody sees. */

export const isBlank = (text: string): boolean => /^[\p{White_Space}\u200B\uFEFF]*$/u.test(text);

export const wordsIn = (text: string): string[] => text.match(/[^\p{White_Space}\u200B\uFEFF]+/gu) ?? [];

/** Replaces each run of blank characters by one space, and removes those at the ends. */
export const singleSpaced = (text: string): string =>
  text.replace(/[\p{White_Space}\u200B\uFEFF]+/gu, " ").replace(/^ | $/g, "");

export const trimmed = (text: string): string =>
  text.replace(/^[\p{White_Space}\u200B\uFEFF]+|[\p{White_Space}\u200B\uFEFF]+$/gu, "");
