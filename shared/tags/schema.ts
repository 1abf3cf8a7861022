/** Tags: free labels of a company for its prospects. */
import * as z from "zod/mini";
import { HexColor, Id, named } from "#shared/schema.ts";

export const Tag = named("Tag", z.object({ id: Id, value: z.string(), color: HexColor }), "A label of the company.");
export type Tag = z.infer<typeof Tag>;

export const StoredTag = z.extend(Tag, { type: z.literal("tag") });
export type StoredTag = z.infer<typeof StoredTag>;
