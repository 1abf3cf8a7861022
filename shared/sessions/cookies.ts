/** The two cookies of the console: the session, and the sign-in that has begun. */
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";

export interface Cookies {
  readonly session: Cookie;
  readonly signIn: Cookie;
}

interface Cookie {
  /** Undefined if the cookie is missing or occurs twice, because one may be from another site. */
  read(request: Pick<Request, "headers">): string | undefined;
  /** Returns the value of a `Set-Cookie` header. */
  set(value: string): string;
  readonly clear: string;
}

/**
 * Browsers accept `__Host-` only over https, from this host itself and for all paths, so no other host can set such a cookie. A local
 * service without https omits the prefix.
 */
export function cookiesOf(origin: string): Cookies {
  const isSecure = origin.startsWith("https://");
  const named = (name: string, sameSite: "Strict" | "Lax", maxAgeMs: number): Cookie => {
    const full = isSecure ? `__Host-${name}` : name;
    const attributes = `Path=/; HttpOnly; SameSite=${sameSite}${isSecure ? "; Secure" : ""}`;
    return {
      read: (request) => cookieValue(request, full),
      set: (value) => `${full}=${value}; Max-Age=${Math.floor(maxAgeMs / 1_000)}; ${attributes}`,
      clear: `${full}=; Max-Age=0; ${attributes}`,
    };
  };
  return {
    session: named("session", "Strict", limits.sessionMs),
    // The identity provider sends the browser back from another site, for which browsers send Lax cookies but no Strict ones.
    signIn: named("sign-in", "Lax", limits.signInMs),
  };
}

function cookieValue({ headers }: Pick<Request, "headers">, name: string): string | undefined {
  const values = (headers.get("cookie") ?? [])
    .flatMap((line) => line.split(";"))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}
