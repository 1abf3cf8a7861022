/**
 * Describes the items in the response of `GET /api/changes`. The OpenAPI document gets one schema for each record type instead of the flat
 * schema `ChangeItem`, so that client generators create a discriminated union.
 */
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { isSchema, type JsonSchema } from "./portable.ts";

/** The component that describes the records of each type. */
const records = {
  prospects: "Prospect",
  notes: "Note",
  appointments: "Appointment",
  territories: "Territory",
  statuses: "Status",
  tags: "Tag",
  users: "User",
} as const satisfies Record<ChangeType, string>;

const refTo = (name: string): string => `#/components/schemas/${name}`;

/** Replaces the flat schema of an item with a `oneOf` of one schema for each type. Throws if a component is missing. */
export function withTypedItems(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { ChangeItem: item, ChangeType: _, ...others } = schemas;
  if (item === undefined || !isSchema(item.properties)) throw new Error("there is no component ChangeItem with fields");
  const { properties, description } = item;
  const typed: Record<string, JsonSchema> = {};
  const mapping: Record<string, string> = {};
  for (const type of ChangeType.options) {
    const record = records[type];
    if (others[record] === undefined) throw new Error(`there is no component ${record}`);
    const name = `Changed${record}`;
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
