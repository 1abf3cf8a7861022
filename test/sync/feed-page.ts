/** The shapes of a page of `GET /api/changes` and of a list, as the tests read them over HTTP. */
import * as z from "zod/mini";

export const Item = z.looseObject({
  type: z.string(),
  id: z.number(),
  version: z.number(),
  op: z.enum(["upsert", "remove"]),
  reason: z.optional(z.string()),
  data: z.optional(z.unknown()),
});
export const Page = z.object({
  phase: z.string(),
  items: z.array(Item),
  cursor: z.string(),
  hasMore: z.boolean(),
  total: z.optional(z.int()),
});
export type Page = z.infer<typeof Page>;
export type Item = z.infer<typeof Item>;
export const List = z.object({ items: z.array(z.looseObject({ id: z.number() })), total: z.int() });
