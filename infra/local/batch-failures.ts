/** Reads which records of a batch a function reported as failed. */
import * as z from "zod/mini";

const Report = z.nullish(
  z.looseObject({ batchItemFailures: z.nullish(z.array(z.object({ itemIdentifier: z.string() }))) }),
);

/** Identifiers of the failed records; `"all"` for a report that Lambda takes as the failure of the whole batch. */
export function failedItems(payload: string, known: ReadonlySet<string>): ReadonlySet<string> | "all" {
  const parsed = z.safeParse(Report, JSON.parse(payload));
  if (!parsed.success) return "all";
  const failed = new Set((parsed.data?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier));
  return [...failed].every((identifier) => known.has(identifier)) ? failed : "all";
}
