/** Finds the values that the JSON Schema of the writing program allows, and that of the reading program does not. */
import { KNOWN_VALUES } from "#shared/open-schema.ts";
import { isSchema, type JsonSchema, typesOf } from "./portable.ts";

/** In a request, the client writes and the service reads. In an answer, the service writes and the client reads. */
export type Direction = "request" | "answer";

/** Receives each value that the writer's schema allows and the reader's does not. `place` is the path of fields to the value. */
export type Report = (place: string, problem: string) => void;

/** `resolve` returns the component to which a `$ref` in this schema refers. */
interface Side {
  readonly schema: JsonSchema;
  readonly resolve: (reference: string) => JsonSchema;
}

type Keyword = readonly [keyword: string, isNarrower: (written: unknown, read: unknown) => boolean];

const above = (written: unknown, read: unknown): boolean =>
  !(Number(written ?? Number.NEGATIVE_INFINITY) >= Number(read));
const below = (written: unknown, read: unknown): boolean =>
  !(Number(written ?? Number.POSITIVE_INFINITY) <= Number(read));
const different = (written: unknown, read: unknown): boolean => JSON.stringify(written) !== JSON.stringify(read);

/** Keywords that limit values. They are compared only for requests, because clients do not check the limits of responses. */
const limits: readonly Keyword[] = [
  ["minimum", above],
  ["minLength", above],
  ["minItems", above],
  ["maximum", below],
  ["maxLength", below],
  ["maxItems", below],
  ["maxProperties", below],
  ["pattern", different],
  ["propertyNames", different],
  ["uniqueItems", different],
];

/** The keywords that the comparison supports. It reports any other keyword, because it would not notice a difference in its value. */
const known: ReadonlySet<string> = new Set([
  ...limits.map(([keyword]) => keyword),
  ...["$ref", "type", "anyOf", "oneOf", "discriminator", "enum", KNOWN_VALUES, "const", "format", "items"],
  ...["properties", "required", "additionalProperties", "description", "default", "example", "examples"],
]);

/** Reports each difference by which a value of the schema `written` can break a program that knows only the schema `read`. */
export function compare(written: Side, read: Side, direction: Direction, report: Report): void {
  const open = new Set<string>();

  function within(a: JsonSchema, b: JsonSchema, place: string, report: Report): void {
    // A component may contain itself. The comparison does not follow such a cycle a second time.
    const pair = a.$ref === undefined || b.$ref === undefined ? undefined : `${String(a.$ref)} ${String(b.$ref)}`;
    if (pair !== undefined && open.has(pair)) return;
    if (pair !== undefined) open.add(pair);
    between(a, b, place, report);
    if (pair !== undefined) open.delete(pair);
  }

  function between(a: JsonSchema, b: JsonSchema, place: string, report: Report): void {
    const [writes, reads] = [resolved(a, written), resolved(b, read)];
    for (const keyword of [...Object.keys(writes), ...Object.keys(reads)]) {
      if (!known.has(keyword)) report(place, `uses the keyword ${keyword}, which this comparison does not know`);
    }
    const choices = listOf(writes.anyOf ?? writes.oneOf);
    if (choices !== undefined) {
      for (const choice of choices) within(choice, b, place, report);
      return;
    }
    const readable = listOf(reads.anyOf ?? reads.oneOf);
    if (readable !== undefined) {
      if (!readable.some((choice) => fits(writes, choice, place))) report(place, "has no matching choice");
      return;
    }
    plain(writes, reads, place, report);
  }

  function fits(a: JsonSchema, b: JsonSchema, place: string): boolean {
    let isFitting = true;
    within(a, b, place, () => {
      isFitting = false;
    });
    return isFitting;
  }

  function plain(writes: JsonSchema, reads: JsonSchema, place: string, report: Report): void {
    const extra = namesOf(writes).filter((type) => !allows(reads, type));
    if (extra.length > 0) {
      report(place, `may be ${extra.join(" or ")}, not only ${namesOf(reads).join(" or ")}`);
      return;
    }
    const [values, readable] = [valuesOf(writes), valuesOf(reads)];
    if (readable !== undefined) {
      const more = values?.filter((value) => !readable.includes(value)).map((value) => JSON.stringify(value));
      if (more === undefined) report(place, "may have any value, not only those of a list");
      else if (more.length > 0) report(place, `may be ${more.join(" or ")}`);
    }
    // Report values that the later document no longer lists, because a client of the earlier document may wait for one of them.
    const gone = textsOf(reads[KNOWN_VALUES]).filter(
      (value) => !(values ?? textsOf(writes[KNOWN_VALUES])).includes(value),
    );
    if (gone.length > 0) report(place, `is never ${gone.map((value) => JSON.stringify(value)).join(" or ")} any more`);
    if (reads.format !== undefined && different(writes.format, reads.format)) {
      report(place, `has the format ${String(writes.format ?? "of any text")}, not ${String(reads.format)}`);
    }
    for (const [keyword, isNarrower] of direction === "request" ? limits : []) {
      if (reads[keyword] !== undefined && isNarrower(writes[keyword], reads[keyword])) {
        const limit = `${keyword} ${JSON.stringify(reads[keyword])}`;
        report(place, `is limited to ${limit}, instead of ${JSON.stringify(writes[keyword] ?? "none")}`);
      }
    }
    inner(writes, reads, place, report);
  }

  function inner(writes: JsonSchema, reads: JsonSchema, place: string, report: Report): void {
    if (isSchema(writes.items) && isSchema(reads.items)) within(writes.items, reads.items, `${place}[]`, report);
    if (isSchema(writes.additionalProperties) && isSchema(reads.additionalProperties)) {
      within(writes.additionalProperties, reads.additionalProperties, `${place}.*`, report);
    }
    const [fields, readFields] = [fieldsOf(writes), fieldsOf(reads)];
    const always = new Set(textsOf(writes.required));
    for (const name of textsOf(reads.required)) {
      if (!always.has(name) && (direction === "request" || name in fields)) {
        report(`${place}.${name}`, direction === "request" ? "is required now" : "may be missing now");
      }
    }
    // A client ignores a field that only the later document has, unless a schema of the earlier document is closed.
    if (direction === "answer" && reads.additionalProperties === false) {
      for (const name of Object.keys(fields)) {
        if (!(name in readFields)) report(`${place}.${name}`, "is new, and clients accept no new fields");
      }
    }
    const [earlier, later] = direction === "request" ? [fields, readFields] : [readFields, fields];
    for (const name of Object.keys(earlier)) {
      const [a, b] = [fields[name], readFields[name]];
      if (!(name in later)) report(`${place}.${name}`, "is gone");
      else if (a !== undefined && b !== undefined) within(a, b, `${place}.${name}`, report);
    }
  }

  within(written.schema, read.schema, "", report);
}

function resolved(schema: JsonSchema, { resolve }: Side): JsonSchema {
  return typeof schema.$ref === "string" ? resolve(schema.$ref) : schema;
}

const listOf = (value: unknown): readonly JsonSchema[] | undefined =>
  Array.isArray(value) ? value.filter(isSchema) : undefined;
const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

function fieldsOf({ properties }: JsonSchema): Readonly<Record<string, JsonSchema>> {
  if (!isSchema(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, value]) => (isSchema(value) ? [[name, value]] : [])),
  );
}

function valuesOf({ enum: values, const: value }: JsonSchema): readonly unknown[] | undefined {
  if (value !== undefined) return [value];
  return Array.isArray(values) ? values : undefined;
}

const namesOf = (schema: JsonSchema): readonly string[] =>
  schema.type === undefined ? ["of any type"] : typesOf(schema).map(String);

function allows(schema: JsonSchema, type: string): boolean {
  const names = namesOf(schema);
  return names.includes("of any type") || names.includes(type) || (type === "integer" && names.includes("number"));
}
