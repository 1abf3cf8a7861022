/** Replays: what may be asked for, and how the table keeps one while it is under way. */

import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import { Id, INSTANT_TEXT, InstantInput, IsoTime, instantOf, isDay, named, Timestamp } from "#shared/schema.ts";

/** `undelivered`: what failed, whether it is given up or waits for another attempt. `all`: also what was delivered. */
export const ReplayedDeliveries = z.enum(["undelivered", "all"]);

const MS_PER_DAY = 86_400_000;

/** A day is its last instant. */
const EndInput = z.pipe(
  IsoTime,
  z.pipe(
    z.transform((value: string): string => {
      const instant = instantOf(value) + (isDay(value) ? MS_PER_DAY - 1 : 0);
      return new Date(instant).toISOString();
    }),
    z.iso.datetime({ precision: 3, error: "must lie in the years 0000 to 9999" }),
  ),
);

export const ReplayRange = named(
  "ReplayRange",
  z.object({
    from: InstantInput,
    to: z.optional(EndInput),
    deliveries: z._default(ReplayedDeliveries, "undelivered"),
  }),
  "The time range, and which of its deliveries to send again.",
);
export type ReplayRange = z.output<typeof ReplayRange>;

/* @__PURE__ */ explain([ReplayRange], () => ({
  fields: {
    from: `From this time on. ${INSTANT_TEXT}`,
    to: "Up to this time, or to the end of this UTC day; now by default.",
    deliveries: "`undelivered`: only failed deliveries. `all`: also delivered ones.",
  },
  example: { from: "2026-06-01T15:00:00Z", to: "2026-06-01T18:30:00Z" },
}));

export const Replayed = named("Replayed", z.object({ count: z.int() }), "How many deliveries are sent again.");
export type Replayed = z.infer<typeof Replayed>;

/* @__PURE__ */ explain([Replayed], () => ({ fields: { count: "The number of deliveries that are sent again." } }));

/** One per webhook. It stands in the due index until it is over, so that the sweeper sees that it goes on. */
export const StoredReplay = z.object({
  type: z.literal("replay"),
  id: z.string(),
  companyId: Id,
  webhookId: Id,
  from: Timestamp,
  /** Null: until it was asked for. */
  to: z.nullable(Timestamp),
  deliveries: ReplayedDeliveries,
  count: z.int(),
  /** The last delivery that was looked at. */
  cursor: z.optional(z.string()),
  dueShard: z.optional(z.string()),
  dueAt: z.optional(Timestamp),
  createdAt: Timestamp,
  expiresAt: z.int(),
});
export type StoredReplay = z.infer<typeof StoredReplay>;
