/** Makes the JSON Schemas of responses and events open, so that clients accept new fields and values of later releases. */

type Schema = Record<string, unknown>;

/** The keyword that replaces `enum`. It lists the known values of a text, and validators ignore it. */
export const KNOWN_VALUES = "x-extensible-enum";

/** Makes one schema open, but not the schemas inside it: zod's `toJSONSchema` calls its `override` once for each schema. */
export function openSchema(schema: Schema): void {
  withoutTimePattern(schema);
  if (schema.additionalProperties === false) delete schema.additionalProperties;
  if (!Array.isArray(schema.enum)) return;
  schema[KNOWN_VALUES] = schema.enum;
  delete schema.enum;
  schema.description = namingValues(schema, schema.description);
}

/** Returns the description with the known values of the schema, unless it names each of them already. */
export function namingValues({ [KNOWN_VALUES]: values }: Readonly<Schema>, description: unknown): string | undefined {
  const text = typeof description === "string" ? description : undefined;
  if (!Array.isArray(values)) return text;
  const names = values.map((value) => `\`${value}\``);
  if (names.every((name) => text?.includes(name))) return text;
  return [text, `Known values: ${names.join(", ")}.`].filter(Boolean).join(" ");
}

/** Removes the pattern of a time, because generators for Python and C# turn it into code that compares a time with a text. */
export function withoutTimePattern(schema: Schema): void {
  if (schema.format === "date-time") delete schema.pattern;
}
