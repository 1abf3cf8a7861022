/** Stored territories -> what the interface shows. */
import { unpackPolygon } from "#shared/territories/polygon.ts";
import type { StoredTerritory, Territory } from "#shared/territories/schema.ts";

export const presentTerritory = (stored: StoredTerritory): Territory => ({
  ...stored,
  polygon: unpackPolygon(stored.polygon),
});
