/** Stores the descriptions and examples that the OpenAPI document shows for a schema and its fields. */
import * as z from "zod/mini";

export interface ParameterText {
  readonly description: string;
  readonly example: string | number;
  /**
   * The JSON Schema that the OpenAPI document shows for this parameter. Set it if the service parses the parameter's string into another
   * type, for example into a page size.
   */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface SchemaText<Field extends string = string> {
  readonly fields?: { readonly [Name in Field]?: string | ParameterText };
  readonly example?: unknown;
}

type FieldOf<S> = S extends z.ZodMiniType ? Extract<keyof z.input<S>, string> : never;

const texts = /* @__PURE__ */ z.registry<{ readonly read: () => SchemaText }>();

/**
 * Stores descriptions and examples for the schemas. Write the call as a statement beside the schema, and mark it `@__PURE__`. Nothing uses
 * its result, so esbuild then removes the call and its strings from the bundles of the functions.
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
