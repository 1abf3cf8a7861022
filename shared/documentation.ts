/** The parts of the OpenAPI document that a schema's shape does not contain: meanings of fields, parameters and examples. */
import * as z from "zod/mini";

export interface ParameterText {
  readonly description: string;
  readonly example: string | number;
  /** Replaces the documented shape of a text that the service parses to another type, for example a page size with a default. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface SchemaText<Field extends string = string> {
  readonly fields?: { readonly [Name in Field]?: string | ParameterText };
  /** An example of the request body. */
  readonly example?: unknown;
}

type FieldOf<S> = S extends z.ZodMiniType ? Extract<keyof z.input<S>, string> : never;

const texts = /* @__PURE__ */ z.registry<{ readonly read: () => SchemaText }>();

/**
 * Adds documentation to each of the schemas. A later call adds to an earlier one. Call the function as a statement next to the schema and
 * mark the call as PURE. Because nothing uses the result, esbuild then removes the call and its texts from the bundles of functions.
 */
export function explain<const S extends readonly z.ZodMiniType[]>(
  schemas: S,
  read: () => SchemaText<FieldOf<S[number]>>,
): void {
  for (const schema of schemas) {
    const before = texts.get(schema)?.read;
    texts.add(schema, { read: before === undefined ? read : () => merged(before(), read()) });
  }
}

const merged = (before: SchemaText, added: SchemaText): SchemaText => ({
  ...before,
  ...added,
  fields: { ...before.fields, ...added.fields },
});

export const textOf = (schema: z.core.$ZodType): SchemaText => texts.get(schema)?.read() ?? {};
