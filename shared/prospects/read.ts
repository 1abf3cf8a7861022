/** Reads one prospect, as far as the caller may see it. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { notFound } from "#shared/errors.ts";
import { isPublished } from "#shared/prospects/published.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";

/** The prospect's row alone. Throws not_found for what the caller may not see. */
export async function readVisibleProspect({ table }: ApiContext, caller: Caller, id: number): Promise<StoredProspect> {
  const item = await table.get(keys.prospect(caller.companyId, id));
  const prospect = item === undefined ? undefined : StoredProspect.parse(item);
  if (prospect === undefined || !isVisible(caller, prospect)) throw notFound("prospect");
  if (!(await isPublished(table, caller.companyId, prospect.importId))) throw notFound("prospect");
  return prospect;
}
