/** Checks the path to which the browser returns after a sign-in, so that a link to the sign-in cannot lead to another site. */
import * as limits from "#shared/limits.ts";

/** A placeholder origin, because a path alone cannot be parsed as a URL. If the parsed URL has another origin, the text was not a path. */
const BASE = "https://console.invalid";

/**
 * Returns the path with its query. Returns `/` for anything that is not a path of the console: another origin, a path that begins with two
 * slashes or contains a backslash or a control character, a path of the API, or a text that is too long.
 */
export function safeReturnTo(text: string | undefined): string {
  if (text === undefined || text.length > limits.returnTo || !/^\/(?!\/)[\x21-\x7e]*$/.test(text)) return "/";
  if (text.includes("\\") || !URL.canParse(text, BASE)) return "/";
  const { origin, pathname, search, hash } = new URL(text, BASE);
  if (origin !== BASE || pathname.startsWith("//") || pathname.startsWith("/api/")) return "/";
  return `${pathname}${search}${hash}`;
}
