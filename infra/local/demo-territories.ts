/** Makes the territories of a demo company: the four quarters of its city, the same each time. */
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import type { StoredTerritory } from "#shared/territories/territories.ts";
import { newTerritoryWrites, packed } from "#shared/territories/territories.ts";
import { type DemoCompany, rounded } from "./demo-prospects.ts";

/** From the middle of the city to its edge: as far as its prospects are scattered. */
const REACH_DEGREES = 0.1;

const quarters = [
  { name: "North East", north: 1, east: 1, totalProperties: 410 },
  { name: "South East", north: -1, east: 1, totalProperties: 365 },
  { name: "South West", north: -1, east: -1, totalProperties: 290 },
  { name: "North West", north: 1, east: -1, totalProperties: 520 },
] as const;

/** Each rep has one, as far as they go round; the others are nobody's. */
export async function loadTerritories(context: ApiContext, company: DemoCompany): Promise<void> {
  const { lat, lng, city } = company.place;
  const now = iso(context.clock.now());
  for (const [index, { name, north, east, totalProperties }] of quarters.entries()) {
    const edge: [number, number] = [rounded(lng + east * REACH_DEGREES), rounded(lat + north * REACH_DEGREES)];
    const territory: StoredTerritory = {
      type: "territory",
      id: await context.ids.next(),
      companyId: company.id,
      name: `${city} ${name}`,
      ...packed([[lng, lat], [edge[0], lat], edge, [lng, edge[1]], [lng, lat]]),
      totalProperties,
      assignedToUserId: company.repIds[index] ?? null,
      createdAt: now,
      updatedAt: now,
      createdBy: company.ownerId,
      updatedBy: company.ownerId,
      version: 1,
    };
    await context.table.transact(newTerritoryWrites(territory));
  }
}
