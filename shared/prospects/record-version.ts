/**
 * The version of a record as devices see it. It also grows without a write of the record's own row: if a name that the record shows
 * changes, if an appointment begins, or if the user may see the record again.
 */

/** 2^53 / 2^24 leaves room for 536 million versions of a row. */
const LOW = 2 ** 24;

/** `low` counts changes without a write of the row, and must never decrease while the row keeps its version. */
export const shownVersion = (rowVersion: number, low = 0): number => rowVersion * LOW + Math.min(low, LOW - 1);

/** Returns the version of the row. */
export const rowVersionOf = (version: number): number => Math.floor(version / LOW);
