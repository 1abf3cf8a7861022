/** Reads and writes territories. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { ASSIGNEE_TEXT } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import { territoriesChangeInHead } from "#shared/company-index/manifest.ts";
import { sharedDelta } from "#shared/company-index/write/entries.ts";
import type { ApiContext, ReadContext } from "#shared/context.ts";
import { absent, all, any, atMost, equals, missing, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { type Plan, unchanged } from "#shared/db/plan.ts";
import type { Reads } from "#shared/db/reads.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError, badReference, existing } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { withPatch } from "#shared/patch.ts";
import { type Polygon, packPolygon, Ring, RingInput, unpackPolygon } from "#shared/reference/polygon.ts";
import { isActiveUser } from "#shared/reference/users.ts";
import { Id, label, named, Timestamp, unlessBlank } from "#shared/schema.ts";

export const Territory = named(
  "Territory",
  z.object({
    id: Id,
    name: z.string(),
    polygon: Ring,
    totalProperties: z.int(),
    assignedToUserId: z.nullable(Id),
    companyId: Id,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  "A named zone. Its polygon is a ring of `[lng, lat]` points. It is empty if none was sent.",
);
export type Territory = z.infer<typeof Territory>;

const Count = z.int().check(z.minimum(0));

const Name = label(limits.name, 0);
const UNTITLED = "Untitled Territory";

export const NewTerritory = named(
  "NewTerritory",
  z.object({
    name: z._default(unlessBlank(z._default(Name, UNTITLED)), UNTITLED),
    /** The API returns `[]` for a territory without a polygon, but a request with `[]` is rejected. */
    polygon: z.optional(RingInput),
    totalProperties: z._default(Count, 0),
    assignedToUserId: z._default(z.nullable(Id), null),
  }),
  "A new zone. Every field is optional.",
);
export type NewTerritory = z.output<typeof NewTerritory>;

/* @__PURE__ */ explain([NewTerritory], () => ({
  example: {
    name: "Capitol Hill",
    polygon: [
      [-104.987, 39.74],
      [-104.973, 39.74],
      [-104.973, 39.727],
      [-104.987, 39.727],
    ],
    totalProperties: 410,
    assignedToUserId: 139,
  },
}));

export const TerritoryPatch = named(
  "TerritoryPatch",
  z.object({
    name: unlessBlank(Name),
    polygon: z.optional(RingInput),
    totalProperties: z.optional(Count),
    assignedToUserId: z.optional(z.nullable(Id)),
  }),
  "Only sent fields change; null as `assignedToUserId` unassigns.",
);
export type TerritoryPatch = z.output<typeof TerritoryPatch>;

/* @__PURE__ */ explain([Territory, NewTerritory, TerritoryPatch], () => ({
  fields: {
    polygon:
      "Ring of `[lng, lat]` points, open or closed. The service returns it exactly as it was sent. An edge whose longitudes differ by more than 180 and less than 360 degrees crosses the 180th meridian, unless the ring encloses a pole.",
    totalProperties: "An estimate of the client; the service does not compute it.",
    assignedToUserId: ASSIGNEE_TEXT,
  },
}));
/* @__PURE__ */ explain([TerritoryPatch], () => ({ example: { assignedToUserId: null } }));

export const StoredTerritory = z.extend(Territory, {
  type: z.literal("territory"),
  polygon: z.instanceof(Uint8Array),
  /** Bytes of the polygon as JSON text. The sum over a company's polygons is limited. */
  polygonBytes: z.int(),
  createdBy: Id,
  updatedBy: Id,
  /** For optimistic locking. The ids of events contain it. */
  version: z.int(),
  deletedAt: z.optional(Timestamp),
});
export type StoredTerritory = z.infer<typeof StoredTerritory>;

export const presentTerritory = (stored: StoredTerritory): Territory => ({
  ...stored,
  polygon: unpackPolygon(stored.polygon),
});

/** Yields the newest territory first. Unpacks one polygon at a time, because all polygons of a company may not fit into memory. */
export async function* listTerritories({ table }: ReadContext, companyId: number): AsyncGenerator<Territory> {
  for await (const item of table.query({ ...keys.territories(companyId), newestFirst: true })) {
    yield presentTerritory(StoredTerritory.parse(item));
  }
}

/** Returns a page, oldest territory first. `after`: creation time (milliseconds since 1970) and id of the last territory before it. */
export async function territoriesAfter(
  table: Reads,
  companyId: number,
  after: readonly number[] | undefined,
  limit: number,
): Promise<{ rows: StoredTerritory[]; isEnd: boolean }> {
  const { pk, begins } = keys.territories(companyId);
  const [createdAt = 0, id = 0] = after ?? [];
  const from = after === undefined ? begins : `${keys.territory(companyId, iso(createdAt), id).sk}!`;
  const rows: StoredTerritory[] = [];
  let bytes = 0;
  for await (const item of table.query({ pk, from, upTo: `${begins}~`, limit })) {
    const row = StoredTerritory.parse(item);
    rows.push(row);
    bytes += row.polygonBytes;
    if (bytes > limits.changesBytes) return { rows, isEnd: false };
  }
  return { rows, isEnd: rows.length < limit };
}

const Counts = z.object({ territories: z._default(z.int(), 0) });

export const countTerritories = async (table: Reads, companyId: number): Promise<number> =>
  Counts.parse((await table.get(keys.territoryCount(companyId))) ?? {}).territories;

export async function getTerritory(context: ApiContext, companyId: number, id: number): Promise<Territory> {
  return presentTerritory(await readTerritory(context, companyId, id));
}

const Locator = z.object({ createdAt: Timestamp });

async function readTerritory({ table }: ApiContext, companyId: number, id: number): Promise<StoredTerritory> {
  const locator = existing(await table.get(keys.territoryLocator(companyId, id)), "territory");
  const key = keys.territory(companyId, Locator.parse(locator).createdAt, id);
  return StoredTerritory.parse(existing(await table.get(key), "territory"));
}

export async function createTerritory(
  context: ApiContext,
  caller: Caller,
  input: NewTerritory,
): Promise<Plan<Territory>> {
  const [id] = await Promise.all([
    context.ids.next(),
    requireAssignee(context, caller.companyId, input.assignedToUserId),
  ]);
  const territory = newTerritory(id, caller, input, iso(context.clock.now()));
  return { writes: newTerritoryWrites(territory), answer: presentTerritory(territory) };
}

export const newTerritory = (
  id: number,
  { companyId, userId }: Caller,
  { polygon = [], ...input }: NewTerritory,
  now: string,
): StoredTerritory => ({
  type: "territory",
  id,
  companyId,
  ...input,
  ...packed(polygon),
  createdAt: now,
  updatedAt: now,
  createdBy: userId,
  updatedBy: userId,
  version: 1,
});

const logged = ({ companyId, id, version, createdAt, deletedAt }: StoredTerritory): Write =>
  sharedDelta(companyId, {
    kind: "territory",
    id,
    version,
    createdAt: Date.parse(createdAt),
    isDeleted: deletedAt !== undefined,
    isShownElsewhere: false,
  });

export const newTerritoryWrites = (territory: StoredTerritory): Write[] => [
  countWrite(territory.companyId, 1, territory.polygonBytes),
  ...territoryWrites(territory),
  territoriesChangeInHead(territory.companyId),
];

/** The same transaction must also contain `countWrite` and `territoriesChangeInHead`. */
export function territoryWrites(territory: StoredTerritory): Write[] {
  const { companyId, id, createdAt } = territory;
  return [
    { put: { ...keyOf(territory), ...territory } },
    { put: { ...keys.territoryLocator(companyId, id), type: "locator", createdAt }, when: absent },
    logged(territory),
  ];
}

const keyOf = ({ companyId, createdAt, id }: StoredTerritory) => keys.territory(companyId, createdAt, id);

export const packed = (polygon: Polygon): Pick<StoredTerritory, "polygon" | "polygonBytes"> => ({
  polygon: packPolygon(polygon),
  polygonBytes: JSON.stringify(polygon).length,
});

/** Fails with `conflict` if the number of territories or the bytes of polygons would exceed the company's limit. */
export function countWrite(companyId: number, territories: number, polygonBytes: number): Write {
  const isRoom = all(
    ...(territories > 0 ? [atMost("territories", limits.territoriesPerCompany - territories)] : []),
    ...(polygonBytes > 0 ? [atMost("polygonBytes", limits.polygonBytesPerCompany - polygonBytes)] : []),
  );
  return {
    update: keys.territoryCount(companyId),
    change: { set: { type: "territoryCount" }, add: { territories, polygonBytes } },
    ...((territories > 0 || polygonBytes > 0) && {
      when: any(missing("territories"), isRoom),
      orThrow: tooManyTerritories,
    }),
  };
}

export function tooManyTerritories(): ApiError {
  const megabytes = limits.polygonBytesPerCompany / 1_000_000;
  return new ApiError(
    "conflict",
    `A company may have at most ${limits.territoriesPerCompany} territories and ${megabytes} MB of polygons.`,
  );
}

export async function updateTerritory(
  context: ApiContext,
  caller: Caller,
  id: number,
  { polygon, ...fields }: TerritoryPatch,
): Promise<Plan<Territory>> {
  const { companyId, userId } = caller;
  const current = await readTerritory(context, companyId, id);
  const next = withPatch(current, { ...fields, ...(polygon !== undefined && packed(polygon)) });
  if (next.assignedToUserId !== current.assignedToUserId) {
    await requireAssignee(context, companyId, next.assignedToUserId);
  }
  if (sameTerritory(current, next)) return unchanged(presentTerritory(current));
  const moved = { updatedAt: iso(context.clock.now()), updatedBy: userId, version: current.version + 1 };
  const written: StoredTerritory = { ...next, ...moved };
  const more = written.polygonBytes - current.polygonBytes;
  const writes: Write[] = [
    ...(more === 0 ? [] : [countWrite(companyId, 0, more)]),
    { put: { ...keyOf(written), ...written }, when: equals("version", current.version) },
    logged(written),
    territoriesChangeInHead(companyId),
  ];
  return { writes, answer: presentTerritory(written) };
}

/** Moves the territory's row to a key that no request reads. The publisher makes the event `territory.deleted` from the moved row. */
export async function deleteTerritory(
  context: ApiContext,
  { companyId, userId }: Caller,
  id: number,
): Promise<Plan<{ id: number }>> {
  const current = await readTerritory(context, companyId, id);
  const now = iso(context.clock.now());
  const version = current.version + 1;
  const gone: StoredTerritory = { ...current, deletedAt: now, updatedAt: now, updatedBy: userId, version };
  const writes: Write[] = [
    countWrite(companyId, -1, -current.polygonBytes),
    { remove: keyOf(current), when: equals("version", current.version) },
    { put: { ...keys.deletedTerritory(companyId, id), ...gone } },
    { remove: keys.territoryLocator(companyId, id) },
    logged(gone),
    territoriesChangeInHead(companyId),
  ];
  return { writes, answer: { id } };
}

async function requireAssignee(context: ApiContext, companyId: number, userId: number | null): Promise<void> {
  if (userId !== null && !(await isActiveUser(context, companyId, userId))) {
    throw badReference("an active user", "assignedToUserId");
  }
}

function sameTerritory({ polygon: one, ...a }: StoredTerritory, { polygon: other, ...b }: StoredTerritory): boolean {
  return JSON.stringify(a) === JSON.stringify(b) && Buffer.compare(one, other) === 0;
}
