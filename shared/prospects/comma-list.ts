/** The values of a query parameter that stand between commas, and in double quotes where they hold a comma themselves. */

/**
 * One value and the comma behind it. In quotes, a doubled quote is one quote, as in CSV. Quotes that do not hold all of what
 * stands between two commas are letters like any other.
 */
const entry = /\s*(?:"((?:[^"]|"")*)"\s*|([^,]*)),/gy;

/** As they were written, empty ones included. */
export const commaList = (text: string): string[] =>
  Array.from(`${text},`.matchAll(entry), ([, quoted, plain = ""]) => quoted?.replaceAll('""', '"') ?? plain);
