/** Defines schemas of values that several settings have. */
import * as z from "zod/mini";

export const matching = (pattern: RegExp, what: string) =>
  z.optional(z.string().check(z.regex(pattern, `must be ${what}`)));

export const Flag = z.union([z.boolean(), z.stringbool()]);

export const DOMAIN_NAME = /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;

/** Accepts a comma-separated string (from the command line) or a JSON list (from cdk.json). */
export const List = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) =>
    (typeof value === "string" ? value.split(",") : value).map((part) => part.trim()).filter((part) => part !== ""),
  ),
);

export const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

export const origins = (accepts: (text: string) => boolean) =>
  z.pipe(
    List,
    z.array(
      z.string().check(
        z.refine(accepts, {
          error: ({ input }) => `${String(input)} is not an origin such as https://app.example.com`,
        }),
      ),
    ),
  );

/**
 * Origins from which the console may load the tiles, fonts and icons of its map. The content security policy of the console's pages allows
 * these origins. A wildcard would weaken this policy, so it is refused.
 */
export const BasemapOrigins = z.optional(origins(isOrigin));
