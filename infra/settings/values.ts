/** Defines schemas of values that several settings have. */
import * as z from "zod/mini";
import { HttpUrl, must } from "../cli/command/accepted.ts";
import { NO_BASEMAP } from "../edge/console-site.ts";

interface SettingTexts {
  readonly description: string;
  /** The behavior if the key is not set. This text is required if the schema has no default value. */
  readonly default?: string;
  /** What the setting changes for users and operators, and what happens if an existing deployment changes the value. */
  readonly effect: string;
  /** By default, the setting costs nothing. */
  readonly cost?: string;
}

export const settingTexts = z.registry<SettingTexts>();

export const matching = (pattern: RegExp, what: string) =>
  z.optional(z.string(must(what)).check(z.regex(pattern, must(what))));

export const oneOf = <const T extends string>(choices: readonly T[]) => z.enum(choices, must(choices.join(" or ")));

/** Describes the values of a flag, for docs/settings.md. */
export const FLAG = "`true` or `false`, in lower case";
/** A flag: text (from the command line) or JSON (from settings.json). Other spellings such as `TRUE` are refused. */
export const Flag = z.pipe(
  z.union([z.boolean(), z.enum(["true", "false"])], must("true or false")),
  z.transform((value) => value === true || value === "true"),
);

export const DOMAIN_NAME = /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/;

/** A comma-separated string (from the command line) or a JSON list (from settings.json). */
export const List = z.pipe(
  z.union([z.string(), z.array(z.string())], must("a text with commas between the values, or a list of texts")),
  z.transform((value) =>
    (typeof value === "string" ? value.split(",") : value).map((part) => part.trim()).filter((part) => part !== ""),
  ),
);

const ORIGIN = "an origin such as https://app.example.com";

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

/** `*` allows all origins. */
export const OriginsOrAll = z.pipe(
  List,
  z.array(z.string().check(z.refine((text) => text === "*" || isOrigin(text), must(`${ORIGIN}, or *`)))),
);

const STYLE = `a URL that begins with http:// or https://, or ${NO_BASEMAP}`;

export const BasemapStyleUrl = z.optional(
  z
    .string(must(STYLE))
    .check(z.refine((text) => text === NO_BASEMAP || z.safeParse(HttpUrl, text).success, must(STYLE))),
);

/** A wildcard is refused, because it would weaken the content security policy. */
export const BasemapOrigins = z.optional(z.pipe(List, z.array(z.string().check(z.refine(isOrigin, must(ORIGIN))))));
