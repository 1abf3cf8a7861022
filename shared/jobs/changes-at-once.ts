/** How many records an import or bulk job changes at the same time. */
import { setting } from "#shared/config.ts";

/** A transaction takes some milliseconds, so a job then changes about a thousand records per second. */
export const CHANGES_AT_ONCE = 12;

/** Less in a small account: each change starts the functions that read the table's stream, and requests need executions, too. */
export const changesAtOnce = (): number => setting("CHANGES_AT_ONCE") ?? CHANGES_AT_ONCE;
