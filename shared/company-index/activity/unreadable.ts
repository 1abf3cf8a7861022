/** The error for damaged rows of a company's activity. */

/** A stored row of a company's activity is damaged. Reports cannot be made without the row, but the search index does not need it. */
export class ActivityUnreadable extends Error {
  override name = "ActivityUnreadable";
}

/** Decodes a row of the activity. Throws ActivityUnreadable if it is damaged. */
export function decoded<T>(sortKey: unknown, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    // The error has no `cause`. A cause of the type IndexUnreadable would trigger the alarm for a damaged search index.
    const reason = error instanceof Error ? error.name : typeof error;
    throw new ActivityUnreadable(`the row ${String(sortKey)} of the activity is damaged: ${reason}`);
  }
}
