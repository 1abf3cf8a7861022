/** UUIDs that clients make. In a separate file, so that only bundles that need it contain it. */
import * as z from "zod/mini";

/** Compare and store them in lower case. `z.uuid` would add the patterns of all UUID versions to the bundles. */
export const Uuid = z
  .string()
  .check(
    z.regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, "must be a UUID"),
    z.meta({ format: "uuid" }),
  );
