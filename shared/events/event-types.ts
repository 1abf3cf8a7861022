/** The catalogue of events as the interface shows it: names, what they mean, and the JSON Schema of their data. */
import * as z from "zod/mini";
import { catalogue } from "#shared/events/catalogue.ts";
import { named } from "#shared/schema.ts";

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
    const { description = "", ...schema } = z.toJSONSchema(data, { io: "output", unrepresentable: "any" });
    return { event, description, schema };
  });
  return made;
}
