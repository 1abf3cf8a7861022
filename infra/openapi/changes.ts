/**
 * Describes the items in the response of `GET /api/changes`: with one schema for each record type in OpenAPI 3.1, from which generators for
 * TypeScript make a discriminated union, and with one flat schema in OpenAPI 3.0.
 */
import { KNOWN_VALUES, namingValues } from "#shared/open-schema.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { isSchema, type JsonSchema } from "./portable.ts";

const records = {
  prospects: "Prospect",
  notes: "Note",
  appointments: "Appointment",
  territories: "Territory",
  statuses: "Status",
  tags: "Tag",
  users: "User",
} as const satisfies Record<ChangeType, string>;

const itemOf = (type: ChangeType): string => `Changed${records[type]}`;
const refTo = (name: string): string => `#/components/schemas/${name}`;

/** Replaces the flat schema `ChangeItem` with a `oneOf` of one schema for each record type. Throws if a component is missing. */
export function withTypedItems(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { ChangeItem: item, ChangeType: _, ...others } = schemas;
  if (item === undefined || !isSchema(item.properties)) throw new Error("there is no component ChangeItem with fields");
  const { properties, description } = item;
  const typed: Record<string, JsonSchema> = {};
  const mapping: Record<string, string> = {};
  for (const type of ChangeType.options) {
    const record = records[type];
    if (others[record] === undefined) throw new Error(`there is no component ${record}`);
    const name = itemOf(type);
    const own = { type: { type: "string", const: type }, data: { $ref: refTo(record) } };
    typed[name] = { ...item, properties: { ...properties, ...own }, description: `The change of one \`${record}\`.` };
    mapping[type] = refTo(name);
  }
  const oneOf = Object.values(mapping).map(($ref) => ({ $ref }));
  const all = {
    ...others,
    ...typed,
    ChangeItem: { oneOf, discriminator: { propertyName: "type", mapping }, description },
  };
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const DATA = `The record as lists show it now. Its schema is ${ChangeType.options
  .map((type) => `\`${records[type]}\` for the type \`${type}\``)
  .join(", ")}.`;

/**
 * Replaces the `oneOf` with a flat schema, in which `data` is an object with any fields. From the `oneOf`, the generators for Kotlin, Swift
 * and Dart create a class that accepts only the last of the types.
 */
export function withFlatItems(schemas: JsonSchema): JsonSchema {
  const { ChangeItem: choice, [itemOf("prospects")]: item } = schemas;
  if (!isSchema(choice) || !isSchema(item) || !isSchema(item.properties))
    throw new Error("there is no typed ChangeItem");
  const types = { [KNOWN_VALUES]: ChangeType.options };
  const properties = {
    ...item.properties,
    type: { type: "string", ...types, description: namingValues(types, undefined) },
    data: { type: "object", additionalProperties: true, description: DATA },
  };
  const flat = { ...item, properties, description: choice.description };
  const typed = new Set(ChangeType.options.map(itemOf));
  const others = Object.entries(schemas).filter(([name]) => !typed.has(name));
  return { ...Object.fromEntries(others), ChangeItem: flat };
}
