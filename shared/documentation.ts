/** Descriptions and examples of schemas in the OpenAPI document. */
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";

export interface ParameterText {
  readonly description: string;
  readonly example: string | number;
  /** Set it if the service parses the parameter's string into another type, for example into a page size. */
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface SchemaText<Field extends string = string> {
  readonly fields?: { readonly [Name in Field]?: string | ParameterText };
  readonly example?: unknown;
}

type FieldOf<S> = S extends z.ZodMiniType ? Extract<keyof z.input<S>, string> : never;

const texts = /* @__PURE__ */ z.registry<{ readonly read: () => SchemaText }>();

/** Adds texts to schemas. Call it as a statement marked `@__PURE__`: esbuild then removes the call and its texts from bundles. */
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

export const pageTexts = (items = "One page, newest first.") => ({
  fields: { items, nextCursor: "Cursor of the next page; null on the last one." },
});

/** The text of the parameter with the size of a page. `more` is a further sentence and begins with a space. */
export const pageSizeText = (more = "", size: number = limits.pageSizeDefault): ParameterText => ({
  description: `A larger value counts as ${limits.pageSizeMax}.${more}`,
  example: 100,
  schema: { type: "integer", minimum: 1, default: size },
});
