/** Accepted rows of a file -> everything that the table and the company index will hold of them. */

import { type Caller, may } from "#shared/auth/caller.ts";
import { folded } from "#shared/caseless.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/item.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { addressFrom, type PackedAddress, packAddresses } from "#shared/prospects/address.ts";
import { nothingUpcoming } from "#shared/prospects/agenda.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { statusSummary } from "#shared/prospects/present.ts";
import { packPlaces } from "#shared/prospects/rows.ts";
import type { LastStatusChange, StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

const DEFAULT_SOURCE = "csv-import";

/** What is decided once for the whole file. */
export interface Plan {
  readonly importId: string;
  readonly now: string;
  readonly dictionary: Dictionary;
  /** By folded value. */
  readonly tagIds: ReadonlyMap<string, number>;
  /** First of as many ids as there are drafts that need one. */
  readonly first: {
    readonly prospect: number;
    readonly address: number;
    readonly note: number;
    readonly change: number;
  };
}

export interface ImportRows {
  readonly items: readonly (Key & Item)[];
  readonly indexed: readonly RowWithNotes[];
}

/** The first draft gets the highest id: of one instant, lists show the highest first, and so keep the order of the file. */
export function importRows(caller: Caller, plan: Plan, drafts: readonly Draft[]): ImportRows {
  const { companyId } = caller;
  const items: (Key & Item)[] = [];
  const indexed: RowWithNotes[] = [];
  const addresses: PackedAddress[] = [];
  const notes: StoredNote[] = [];
  let { address: addressId, note: noteId, change: changeId } = plan.first;
  for (const [i, draft] of drafts.entries()) {
    const id = plan.first.prospect + drafts.length - 1 - i;
    const prospect = prospectFrom(caller, plan, draft, id, draft.address === null ? 0 : addressId++);
    if (draft.statusId !== null) prospect.lastStatusChange = firstStatus(changeId++, prospect, plan.dictionary);
    if (prospect.address !== null) addresses.push({ ...prospect.address, prospectId: id });
    const own = draft.note === null ? [] : [noteFrom(prospect, draft.note, noteId++)];
    notes.push(...own);
    items.push({ ...keys.prospect(companyId, id), ...prospect });
    indexed.push({ row: indexRow(prospect), notes: own.map(indexNote) });
  }
  for (const note of notes) {
    items.push({ ...besideKeys.note(companyId, note.prospectId, note.createdAt, note.id), ...note });
  }
  const { importId, now } = plan;
  return {
    items: [...items, ...packAddresses(companyId, importId, now, addresses), ...packPlaces(companyId, now, notes)],
    indexed,
  };
}

function prospectFrom(caller: Caller, plan: Plan, draft: Draft, id: number, addressId: number): StoredProspect {
  const { companyId, userId } = caller;
  // A rep who sees only own prospects would lose sight of one that nobody is assigned to.
  const assignedToUserId = draft.assignedToUserId ?? (may(caller, "canViewAllProspects") ? null : userId);
  return {
    type: "prospect",
    id,
    companyId,
    name: draft.name,
    phoneNumber: draft.phoneNumber,
    secondaryPhoneNumber: null,
    emailAddress: draft.emailAddress,
    lat: draft.lat,
    lng: draft.lng,
    address: draft.address === null ? null : addressFrom(addressId, draft.address),
    statusId: draft.statusId,
    lastStatusChange: null,
    ...nothingUpcoming,
    assignedToUserId,
    assignedByUserId: assignedToUserId === null ? null : userId,
    tagIds: draft.tags.flatMap((value) => plan.tagIds.get(folded(value)) ?? []),
    source: draft.source === undefined ? DEFAULT_SOURCE : draft.source,
    sourceId: null,
    sourceCreatedAt: null,
    customFieldData: null,
    createdAt: plan.now,
    updatedAt: plan.now,
    createdBy: userId,
    updatedBy: userId,
    version: 1,
    importId: plan.importId,
  };
}

const firstStatus = (
  id: number,
  { statusId, createdBy, createdAt }: StoredProspect,
  { statuses }: Dictionary,
): LastStatusChange => ({
  id,
  status: statusSummary(statusId === null ? undefined : statuses.get(statusId)),
  previousStatus: null,
  changedBy: createdBy,
  source: DEFAULT_SOURCE,
  createdAt,
  version: 1,
});

const noteFrom = (prospect: StoredProspect, body: string, id: number): StoredNote => ({
  type: "note",
  id,
  companyId: prospect.companyId,
  prospectId: prospect.id,
  body,
  createdAt: prospect.createdAt,
  updatedAt: prospect.createdAt,
  createdBy: prospect.createdBy,
  version: 1,
  ...(prospect.importId !== undefined && { importId: prospect.importId }),
});
