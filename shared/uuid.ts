/** The schema of UUIDs that clients make. It is in a separate file, so that only bundles that need it contain it. */
import * as z from "zod/mini";

/**
 * UUIDs are case-insensitive, so compare and store them in lower case. The pattern accepts every UUID version. The schema is not `z.uuid`,
 * because that would add the patterns of all UUID versions to the bundles.
 */
export const Uuid = z
  .string()
  .check(
    z.regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, "must be a UUID"),
    z.meta({ format: "uuid" }),
  );
