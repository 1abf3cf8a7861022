/** Defines schemas of values that several settings have. */
import * as z from "zod/mini";

export const matching = (pattern: RegExp, what: string) =>
  z.optional(z.string().check(z.regex(pattern, `must be ${what}`)));

export const Flag = z.union([z.boolean(), z.stringbool()]);

export const DOMAIN_NAME = /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;
