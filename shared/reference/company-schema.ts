/** A company: the tenant that every record belongs to. */

import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { Id, named, Timestamp, text } from "#shared/schema.ts";

export const Company = named(
  "Company",
  z.object({ id: Id, name: text(limits.name, 1), createdAt: Timestamp, updatedAt: Timestamp }),
  "The tenant that every record belongs to.",
);
export type Company = z.infer<typeof Company>;

export const StoredCompany = z.extend(Company, {
  type: z.literal("company"),
  /** Counts the changes of statuses, tags and users. */
  dictionaryVersion: z.optional(z.int()),
});
export type StoredCompany = z.infer<typeof StoredCompany>;
