/** What an import job is asked to do. */
import * as z from "zod/mini";
import { Mapping } from "#shared/prospects/csv/mapping.ts";
import { named } from "#shared/schema.ts";

export const NewImport = named(
  "NewImport",
  z.object({
    bytes: z.optional(z.int().check(z.minimum(1))),
    sha256: z.optional(z.string().check(z.regex(/^[A-Za-z0-9+/]{43}=$/, "must be 32 bytes in base64"))),
    dryRun: z.optional(z.boolean()),
    mapping: z.optional(Mapping),
  }),
);
export type NewImport = z.infer<typeof NewImport>;
