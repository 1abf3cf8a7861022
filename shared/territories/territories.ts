/** Reads and writes the territories of a company. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { absent, all, equals, missing, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Write } from "#shared/db/table.ts";
import { badReference, notFound } from "#shared/http/problem.ts";
import { type NewTerritory, StoredTerritory, Territory, type TerritoryPatch } from "#shared/territories/schema.ts";
import { isActiveUser } from "#shared/users/users.ts";
import type { World } from "#shared/world.ts";

/** All territories of the company that are not deleted, newest first: one Query. A polygon is taken apart when its turn comes. */
export async function listTerritories({ table }: World, companyId: number): Promise<Iterable<Territory>> {
  const territories: StoredTerritory[] = [];
  for await (const item of table.query(keys.territories(companyId))) {
    if (item.deletedAt === undefined) territories.push(StoredTerritory.parse(item));
  }
  territories.sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : b.id - a.id));
  return presented(territories);
}

function* presented(territories: readonly StoredTerritory[]): Generator<Territory> {
  for (const territory of territories) yield presentTerritory(territory);
}

export async function getTerritory(world: World, companyId: number, id: number): Promise<Territory> {
  return presentTerritory(await readTerritory(world, companyId, id));
}

async function readTerritory({ table }: World, companyId: number, id: number): Promise<StoredTerritory> {
  const item = await table.get(keys.territory(companyId, id));
  if (item === undefined || item.deletedAt !== undefined) throw notFound("territory");
  return StoredTerritory.parse(item);
}

export async function createTerritory(world: World, caller: Caller, input: NewTerritory): Promise<Territory> {
  const { companyId, userId } = caller;
  const [id] = await Promise.all([world.ids.next(), requireAssignee(world, companyId, input.assignedToUserId)]);
  const now = iso(world.clock.now());
  const territory: StoredTerritory = {
    type: "territory",
    id,
    companyId,
    ...input,
    polygon: JSON.stringify(input.polygon ?? []),
    createdAt: now,
    updatedAt: now,
    createdBy: userId,
    updatedBy: userId,
    version: 1,
  };
  const made = presentTerritory(territory);
  await world.commit([newTerritoryWrite(territory)], made);
  return made;
}

export const newTerritoryWrite = (territory: StoredTerritory): Write => ({
  put: { ...keys.territory(territory.companyId, territory.id), ...territory },
  when: absent,
});

/** Only sent fields change; a patch that changes nothing writes nothing. */
export function updateTerritory(world: World, caller: Caller, id: number, patch: TerritoryPatch): Promise<Territory> {
  const { companyId, userId } = caller;
  return optimistic(async () => {
    const current = await readTerritory(world, companyId, id);
    const next = patched(current, patch);
    if (next.assignedToUserId !== current.assignedToUserId) {
      await requireAssignee(world, companyId, next.assignedToUserId);
    }
    if (sameTerritory(current, next)) return presentTerritory(current);
    const moved = { updatedAt: iso(world.clock.now()), updatedBy: userId, version: current.version + 1 };
    const written: StoredTerritory = { ...next, ...moved };
    const put = { ...keys.territory(companyId, id), ...written };
    await world.table.transact([{ put, when: equals("version", current.version) }]);
    return presentTerritory(written);
  });
}

/** Hides the territory at once from every read; its row stays. */
export async function deleteTerritory(world: World, { companyId, userId }: Caller, id: number): Promise<void> {
  const now = iso(world.clock.now());
  const write: Write = {
    update: keys.territory(companyId, id),
    change: { set: { deletedAt: now, updatedAt: now, updatedBy: userId }, add: { version: 1 } },
    when: all(present, missing("deletedAt")),
  };
  // A transaction of one: its token tells a repeated delete of ours from one that found nothing.
  await world.table.transact([write]).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? notFound("territory") : error;
  });
}

async function requireAssignee(world: World, companyId: number, userId: number | null): Promise<void> {
  if (userId !== null && !(await isActiveUser(world, companyId, userId))) throw badReference("assignedToUserId");
}

function patched(current: StoredTerritory, patch: TerritoryPatch): StoredTerritory {
  const { name, polygon, totalProperties, assignedToUserId } = patch;
  return {
    ...current,
    name: name ?? current.name,
    polygon: polygon === undefined ? current.polygon : JSON.stringify(polygon),
    totalProperties: totalProperties ?? current.totalProperties,
    assignedToUserId: assignedToUserId === undefined ? current.assignedToUserId : assignedToUserId,
  };
}

const sameTerritory = (a: StoredTerritory, b: StoredTerritory): boolean => JSON.stringify(a) === JSON.stringify(b);

export const presentTerritory = (stored: StoredTerritory): Territory => ({
  ...stored,
  polygon: Territory.shape.polygon.parse(JSON.parse(stored.polygon)),
});
