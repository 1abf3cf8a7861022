/** The schema of UUIDs that clients make. It has a file of its own, so that only bundles that need it contain it. */
import * as z from "zod/mini";

/**
 * Upper and lower case are equal, so compare and store a UUID in lower case. The pattern accepts every version. `z.uuid` would add all
 * patterns of zod's UUIDs to the bundles.
 */
export const Uuid = z
  .string()
  .check(
    z.regex(/^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/, "must be a UUID"),
    z.meta({ format: "uuid" }),
  );
