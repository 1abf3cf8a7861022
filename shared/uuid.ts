/** The schema of UUIDs that clients make. It has a separate file, so that bundles without UUIDs do not contain it. */
import * as z from "zod/mini";

/** Convert UUIDs to lower case before you compare or store them. `z.uuid` would add the patterns of all UUID versions to the bundles. */
export const Uuid = z
  .string()
  .check(
    z.regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, "must be a UUID"),
    z.meta({ format: "uuid" }),
  );
