/** The versions of all territories of a company. A warm function caches them until a territory changes. */
import * as z from "zod/mini";
import { cachePerTable } from "#shared/cache.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

const Versioned = z.object({ id: z.int(), version: z.int() });
type Versioned = z.infer<typeof Versioned>;

const versions = cachePerTable<readonly Versioned[]>({
  maxBytes: 20_000_000,
  bytesOf: (territories) => 1_000 + 100 * territories.length,
});

export async function territoryVersions(
  table: Reads,
  companyId: number,
  { logId, territoriesVersion }: Pick<Head, "logId" | "territoriesVersion">,
): Promise<readonly Versioned[]> {
  const key = `${companyId} ${logId}`;
  const known = versions(table).get(key);
  if (known?.version === territoriesVersion) return known.value;
  const territories: Versioned[] = [];
  const { pk, begins } = keys.territories(companyId);
  for await (const item of table.query({ pk, begins })) territories.push(Versioned.parse(item));
  versions(table).set(key, territoriesVersion, territories);
  return territories;
}
