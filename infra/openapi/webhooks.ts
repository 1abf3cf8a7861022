/** Describes the deliveries of each event in the OpenAPI 3.1 document: the schema of the body, and an example. */
import * as z from "zod/mini";
import { UserSummary } from "#shared/auth/user-schema.ts";
import { explain } from "#shared/documentation.ts";
import { Id, named, Timestamp } from "#shared/schema.ts";
import { catalogue, deliveredData, EventName } from "#shared/webhooks/catalogue.ts";
import { bodyText, DeliveryTrigger } from "#shared/webhooks/delivery.ts";
import { records, sampleData } from "#shared/webhooks/events/samples.ts";
import type { Components } from "./schemas.ts";

const CollectedEvent = named(
  "CollectedEvent",
  z.object({ id: z.string(), createdAt: Timestamp, data: z.record(z.string(), z.unknown()) }),
  "One of the events that a delivery with a delay has collected.",
);

explain([CollectedEvent], () => ({ fields: { id: "Id of the event.", data: "As in the `data` of a delivery." } }));

const titleOf = (event: EventName): string =>
  event.replace(/(?:^|[._])(\w)/g, (_, letter: string) => letter.toUpperCase());

function bodySchema(event: EventName): z.ZodMiniType {
  const name = `${titleOf(event)}Event`;
  const body = z.object({
    id: z.string(),
    event: z.literal(event),
    createdAt: Timestamp,
    companyId: Id,
    webhookId: Id,
    registrationId: z.nullable(Id),
    trigger: DeliveryTrigger,
    triggeredBy: z.nullable(UserSummary),
    eventCount: z.int(),
    test: z.optional(z.literal(true)),
    data: named(`${name}Data`, deliveredData(catalogue[event]), descriptionOf(event)),
    events: z.optional(z.array(CollectedEvent)),
  });
  explain([body], () => ({
    fields: {
      id: "Id of the delivery, the same at every attempt.",
      event: "Name of the event.",
      createdAt: "When the event happened. UTC, with milliseconds.",
      webhookId: "The webhook that receives the delivery.",
      registrationId: "The registration that the delivery belongs to; null for a sample of an event that none names.",
      trigger: "`manual` if a user pressed a button or sent a sample.",
      triggeredBy: "This user; null for `automatic`.",
      eventCount: "The number of events in the delivery.",
      test: "True for a sample. Absent for a real event.",
      events: "All events of a delivery with a delay, first to last. `data` is that of the last one.",
    },
  }));
  return named(name, body, `The body of a delivery of \`${event}\`.`);
}

function descriptionOf(event: EventName): string {
  const description = z.globalRegistry.get(catalogue[event])?.description;
  if (description === undefined) throw new Error(`the event ${event} has no description`);
  return description;
}

/** Returns an example of the event's body. Only the body of `webhook.test` has the field `test`. */
function example(event: EventName): unknown {
  const isTest = event === "webhook.test";
  const { user, times, territory } = records;
  const described = {
    id: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204",
    event,
    eventId: "",
    createdAt: times.createdAt,
    companyId: territory.companyId,
    webhookId: 2047,
    registrationId: isTest ? null : 2048,
    trigger: isTest ? "manual" : "automatic",
  } as const;
  const data = JSON.stringify(sampleData(event));
  return JSON.parse(isTest ? bodyText(described, user, data, { test: true }) : bodyText(described, null, data));
}

const answered = {
  description:
    "Every status from 200 to 299 within 10 seconds confirms the delivery. Every other answer is a failed attempt; 410 also pauses the webhook.",
};

/** The schemas are created only once, because a name must not belong to two schemas. */
const bodies = EventName.options.map((event) => [event, bodySchema(event)] as const);

export const webhooks = (components: Components): Record<string, unknown> =>
  Object.fromEntries(
    bodies.map(([event, body]) => {
      const content = { schema: components.schema(body, "output"), example: example(event) };
      const post = {
        operationId: `on${titleOf(event)}`,
        summary: descriptionOf(event),
        description: "The service sends this request to webhooks. The signature is in its headers.",
        tags: ["Webhooks"],
        security: [],
        requestBody: { required: true, content: { "application/json": content } },
        responses: { "2XX": answered },
      };
      return [event, { post }];
    }),
  );
