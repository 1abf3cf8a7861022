/** What the OpenAPI document says of a schema besides its shape: meanings of fields, parameters and examples. */
import * as z from "zod/mini";

export interface ParameterText {
  readonly description: string;
  readonly example: string | number;
  /** Replaces the shape of a text that the service reads as another type, such as a page size with its default. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface SchemaText<Field extends string = string> {
  readonly fields?: { readonly [Name in Field]?: string | ParameterText };
  /** Of a request body. */
  readonly example?: unknown;
}

type FieldOf<S> = S extends z.ZodMiniType ? Extract<keyof z.input<S>, string> : never;

const texts = /* @__PURE__ */ z.registry<{ readonly read: () => SchemaText }>();

/**
 * Describes each of the schemas; a later call adds to an earlier one. Call it as a statement next to the schema and mark the call as
 * PURE: esbuild then removes it with its text from the bundles of functions, because nothing uses the result.
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
