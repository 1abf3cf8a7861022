/** Converts the drafts of an import to table items and index rows. */
import type { Caller } from "#shared/auth/caller.ts";
import { folded } from "#shared/caseless.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Ids } from "#shared/db/ids.ts";
import * as keys from "#shared/db/keys.ts";
import { blockOf, type Key } from "#shared/db/keys.ts";
import type { ImportNames } from "#shared/jobs/import/check.ts";
import type { Blocks, Counts } from "#shared/jobs/import/stored.ts";
import { addressFrom } from "#shared/prospects/address-input.ts";
import { type PackedAddress, packAddresses } from "#shared/prospects/address-rows.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { packNoteLocators } from "#shared/prospects/rows.ts";
import { prospectItem, type StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";
import { IMPORT_SOURCE, newProspect, statusChange } from "#shared/prospects/write.ts";

export interface ImportPlan {
  readonly importId: number;
  readonly names: ImportNames;
  readonly now: string;
  /** The first id of each kind of record. `total` contains the number of ids of each kind. */
  readonly first: Counts;
  readonly total: Counts;
}

/** Reserves the ids of an import. Returns the attributes with these ids for the row of the import. */
export async function leaseImportIds(ids: Ids, companyId: number, importId: number, total: Counts) {
  const mark = String(importId);
  const [prospect, address, note, change] = await Promise.all([
    total.prospect > 0 ? ids.takeForImport("prospect", companyId, total.prospect, mark) : 0,
    total.address > 0 ? ids.takeForImport("address", companyId, total.address, mark) : 0,
    total.note > 0 ? ids.take(total.note) : 0,
    total.change > 0 ? ids.take(total.change) : 0,
  ]);
  return {
    first: { prospect, address, note, change },
    prospectBlocks: blocksOf(prospect, total.prospect),
    addressBlocks: blocksOf(address, total.address),
    noteBlocks: blocksOf(note, total.note),
  };
}

const blocksOf = (first: number, count: number): Blocks | null =>
  count === 0 ? null : { from: blockOf(first), to: blockOf(first + count - 1) };

/** Earlier batches used `done` ids. Later rows get lower ids, so that lists, which show the highest id first, keep the file's order. */
export function rowsOf(caller: Caller, plan: ImportPlan, done: Counts, drafts: readonly Draft[]) {
  const { companyId } = caller;
  const { importId, names, now, first, total } = plan;
  const items: (Key & Item)[] = [];
  const indexed: RowWithNotes[] = [];
  const addresses: PackedAddress[] = [];
  const notes: StoredNote[] = [];
  const highest = first.prospect + total.prospect - done.prospect - 1;
  const origin = { dictionary: names.dictionary, source: IMPORT_SOURCE };
  let [addressId, noteId, changeId] = [
    first.address + done.address,
    first.note + done.note,
    first.change + done.change,
  ];
  for (const [i, draft] of drafts.entries()) {
    const id = highest - i;
    const prospect = prospectFrom(caller, plan, draft, id, draft.address === null ? 0 : addressId++);
    if (draft.statusId !== null) prospect.lastStatusChange = statusChange(changeId++, prospect, null, origin);
    if (prospect.address !== null) addresses.push({ ...prospect.address, prospectId: id });
    const own = draft.note === null ? [] : [noteFrom(prospect, draft.note, noteId++)];
    notes.push(...own);
    items.push({ ...keys.prospect(companyId, id), ...prospectItem(prospect) });
    indexed.push({ row: indexRow(prospect), notes: own.map(indexNote) });
  }
  for (const note of notes) {
    items.push({ ...attachedKeys.note(companyId, note.prospectId, note.createdAt, note.id), ...note });
  }
  const packed = [
    ...packAddresses(companyId, String(importId), now, addresses),
    ...packNoteLocators(companyId, now, notes),
  ];
  return { items: [...items, ...packed], indexed };
}

function prospectFrom(
  caller: Caller,
  { importId, names, now }: ImportPlan,
  draft: Draft,
  id: number,
  addressId: number,
): StoredProspect {
  return newProspect(caller, now, {
    id,
    name: draft.name,
    phoneNumber: draft.phoneNumber,
    secondaryPhoneNumber: draft.secondaryPhoneNumber,
    emailAddress: draft.emailAddress,
    lat: draft.lat,
    lng: draft.lng,
    address: draft.address === null ? null : addressFrom(addressId, draft.address),
    statusId: draft.statusId,
    assignedToUserId: draft.assignedToUserId,
    tagIds: draft.tags.flatMap((value) => names.tagIds.get(folded(value)) ?? []),
    source: draft.source === undefined ? IMPORT_SOURCE : draft.source,
    sourceId: draft.sourceId,
    customFieldData: draft.customFieldData === null ? null : JSON.stringify(draft.customFieldData),
    importId: String(importId),
  });
}

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
  importId: prospect.importId,
});
