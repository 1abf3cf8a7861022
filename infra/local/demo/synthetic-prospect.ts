/** Builds the rows of invented prospects and notes, for the demo companies and the benchmarks. */
import { nothingUpcoming } from "#shared/prospects/agenda.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import type { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";

export interface SyntheticCompany {
  readonly id: number;
  readonly ownerId: number;
  readonly statuses: readonly StoredStatus[];
  readonly repIds: readonly number[];
  readonly tagIds: readonly number[];
}

type ChosenFields =
  | "id"
  | "name"
  | "phoneNumber"
  | "secondaryPhoneNumber"
  | "emailAddress"
  | "lat"
  | "lng"
  | "address"
  | "assignedToUserId"
  | "tagIds"
  | "createdAt"
  | "importId";

export interface Chosen extends Pick<StoredProspect, ChosenFields> {
  readonly source: string;
  readonly status: StoredStatus | undefined;
  readonly changeId: number;
}

/** Returns a prospect's row with the fields that an import would write. */
export function syntheticProspect({ id: companyId, ownerId }: SyntheticCompany, chosen: Chosen): StoredProspect {
  const { status, changeId, ...fields } = chosen;
  const { source, createdAt, assignedToUserId } = fields;
  const change = { id: changeId, changedBy: ownerId, source, createdAt, version: 1 };
  return {
    type: "prospect",
    companyId,
    ...fields,
    statusId: status?.id ?? null,
    lastStatusChange: status === undefined ? null : { ...change, status: statusSummary(status), previousStatus: null },
    assignedByUserId: assignedToUserId === null ? null : ownerId,
    ...nothingUpcoming,
    sourceId: null,
    sourceCreatedAt: null,
    customFieldData: null,
    updatedAt: createdAt,
    createdBy: ownerId,
    updatedBy: ownerId,
    version: 1,
  };
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
