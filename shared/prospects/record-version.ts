/**
 * The version of a record as devices see it. It grows whenever the record as shown changes, also without a write of the record's own row:
 * if a name changes that the record shows, if an appointment begins, or if the record comes back into the user's sight.
 */

/** The row's version is the high part. 2^53 / 2^24 leaves room for 536 million versions of a row. */
const LOW = 2 ** 24;

/** `low` must never decrease while the row keeps its version. */
export const shownVersion = (rowVersion: number, low = 0): number => rowVersion * LOW + Math.min(low, LOW - 1);

/** Returns the version of the row. Devices may still have versions of earlier releases, which are versions of rows. */
export const rowVersionOf = (version: number): number => (version < LOW ? version : Math.floor(version / LOW));
