/** The versions of all territories of a company. A warm function caches them until a territory changes. */
import * as z from "zod/mini";
import type { Head } from "#shared/company-index/manifest.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";

const Versioned = z.object({ id: z.int(), version: z.int() });
type Versioned = z.infer<typeof Versioned>;

interface Cached {
  /** As in the head row of the company index when the territories were read. */
  readonly at: string;
  readonly territories: readonly Versioned[];
}

/** The versions of 10 000 territories need less than a megabyte. */
const CACHED_COMPANIES = 50;

const caches = new WeakMap<Reads, Map<number, Cached>>();

export async function territoryVersions(
  table: Reads,
  companyId: number,
  { logId, territoriesVersion }: Pick<Head, "logId" | "territoriesVersion">,
): Promise<readonly Versioned[]> {
  const cache = caches.get(table) ?? new Map<number, Cached>();
  caches.set(table, cache);
  const at = `${logId}.${territoriesVersion}`;
  const known = cache.get(companyId);
  if (known?.at === at) return known.territories;
  const territories: Versioned[] = [];
  const { pk, begins } = keys.territories(companyId);
  for await (const item of table.query({ pk, begins })) territories.push(Versioned.parse(item));
  cache.delete(companyId);
  cache.set(companyId, { at, territories });
  for (const oldest of [...cache.keys()].slice(0, -CACHED_COMPANIES)) cache.delete(oldest);
  return territories;
}
