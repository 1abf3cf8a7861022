/** The catalogue of events as the interface shows it: names, what they mean, and the JSON Schema of their data. */
import * as z from "zod/mini";
import { Prospect } from "#shared/prospects/schema.ts";
import { named } from "#shared/schema.ts";
import { catalogue, type EventName } from "#shared/webhooks/events/catalogue.ts";

export const EventType = named(
  "EventType",
  z.object({
    event: z.string(),
    description: z.string(),
    /** Draft 2020-12. */
    schema: z.record(z.string(), z.unknown()),
  }),
  "An event that a registration can name.",
);
export type EventType = z.infer<typeof EventType>;

let made: EventType[] | undefined;

/** In the order of the catalogue. */
export function eventTypes(): EventType[] {
  made ??= Object.entries(catalogue).map(([event, data]) => {
    const described: unknown = z.toJSONSchema(data, { io: "output", unrepresentable: "any" }).description;
    const schema = z.toJSONSchema(asTold(data), { io: "output", unrepresentable: "any" });
    return { event, description: String(described), schema: { ...schema } };
  });
  return made;
}

/** As the event tells it, or a button does: with a prospect, and null for everything else. */
function asTold({ shape }: (typeof catalogue)[EventName]): z.ZodMiniType {
  const fields: Record<string, z.ZodMiniType> = shape;
  const others = Object.entries(fields).filter(([field]) => field !== "prospect");
  const told = others.map(([field, schema]) => [field, z.nullable(schema)] as const);
  return z.object({ ...Object.fromEntries(told), prospect: fields.prospect ?? z.optional(Prospect) });
}
