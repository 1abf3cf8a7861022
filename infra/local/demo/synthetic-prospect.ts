/** Builds the rows of invented prospects and notes, for the demo companies and the benchmarks. */
import type { Caller } from "#shared/auth/caller.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import type { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import { newProspect } from "#shared/prospects/write.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";

export interface SyntheticCompany {
  readonly id: number;
  readonly ownerId: number;
  readonly statuses: readonly StoredStatus[];
  readonly repIds: readonly number[];
  readonly tagIds: readonly number[];
}

type Given = Omit<Parameters<typeof newProspect>[2], "statusId" | "sourceId" | "customFieldData">;

export interface Chosen extends Given {
  readonly source: string;
  readonly createdAt: string;
  readonly status: StoredStatus | undefined;
  readonly changeId: number;
}

export const ownerOf = ({ id: companyId, ownerId: userId }: SyntheticCompany): Caller => ({
  companyId,
  userId,
  role: "owner",
  permissions: [],
});

/** Returns a prospect's row with the fields that an import of the owner would write. */
export function syntheticProspect(company: SyntheticCompany, chosen: Chosen): StoredProspect {
  const { status, changeId, createdAt, ...given } = chosen;
  const fields = { ...given, statusId: status?.id ?? null, sourceId: null, customFieldData: null };
  const prospect = newProspect(ownerOf(company), createdAt, fields);
  if (status === undefined) return prospect;
  const change = { id: changeId, changedBy: company.ownerId, source: given.source, createdAt, version: 1 };
  return { ...prospect, lastStatusChange: { ...change, status: statusSummary(status), previousStatus: null } };
}

export const syntheticNote = (
  { id: prospectId, companyId, importId }: StoredProspect,
  chosen: Pick<StoredNote, "id" | "body" | "createdBy" | "createdAt">,
): StoredNote => ({
  type: "note",
  companyId,
  prospectId,
  ...chosen,
  updatedAt: chosen.createdAt,
  version: 1,
  importId,
});

export function pick<T>(from: readonly T[], random: () => number): T {
  const picked = from[Math.floor(random() * from.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

/** Rounds degrees to six decimals (about 10 cm). */
export const rounded = (degrees: number): number => Math.round(degrees * 1e6) / 1e6;
