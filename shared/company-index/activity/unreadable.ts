/** The error for damaged rows of a company's activity. */

/** A stored row of a company's activity is damaged. Reports need the row, but the search index does not. */
export class ActivityUnreadable extends Error {
  override name = "ActivityUnreadable";
}

/** Decodes a row of the activity. Throws ActivityUnreadable if it is damaged. */
export function decoded<T>(sortKey: unknown, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    // The error has no cause, because the alarm of a damaged index also looks at causes.
    const reason = error instanceof Error ? error.name : typeof error;
    throw new ActivityUnreadable(`the row ${String(sortKey)} of the activity is damaged: ${reason}`);
  }
}
