/** Changes an existing prospect by the cells of an imported row. Empty cells change nothing. */
import type { Caller } from "#shared/auth/caller.ts";
import { folded } from "#shared/caseless.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import type { NewAddress } from "#shared/prospects/address-input.ts";
import type { FilledCells } from "#shared/prospects/csv/draft.ts";
import { addressColumns } from "#shared/prospects/csv/format.ts";
import type { Field } from "#shared/prospects/csv/header.ts";
import type { ProspectPatch } from "#shared/prospects/input.ts";
import { keyOf, type MatchBy } from "#shared/prospects/match-key.ts";
import { StoredNote, type StoredProspect } from "#shared/prospects/stored.ts";
import { changeByImport } from "#shared/prospects/write.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

export interface RowChange {
  readonly id: number;
  readonly filled: FilledCells;
  /** Columns that the file names by synonyms. A value that the prospect cannot take is ignored in such a column. */
  readonly lenient: ReadonlySet<Field>;
}

export interface ImportOfChanges {
  readonly importId: string;
  readonly by: MatchBy;
  readonly dictionary: Dictionary;
  /** The ids of all tags of the file by case-folded value. */
  readonly tagIds: ReadonlyMap<string, number>;
}

/**
 * Returns the number of ignored values in `lenient` columns, and a message if the prospect was not changed, for example because it was
 * deleted during the import.
 */
export async function changeByRow(
  context: ApiContext,
  caller: Caller,
  { importId, by, dictionary, tagIds }: ImportOfChanges,
  { id, filled, lenient }: RowChange,
): Promise<{ message?: string; warnings: number }> {
  try {
    const before = await changeByImport(context, caller, id, { importId, dictionary }, async (current) => {
      if (!hasKeyOf(by, current, filled)) throw new ApiError("conflict", GONE);
      const tags = filled.tags.flatMap((value) => tagIds.get(folded(value)) ?? []);
      return {
        patch: patchOf(current, { filled, lenient }, dictionary),
        tagIds: tags.length === 0 ? undefined : tags,
        note: await newNoteOf(context, current, filled),
      };
    });
    return { warnings: leftOut(before, filled, lenient) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === "not_found") return { message: GONE, warnings: 0 };
    if (error.code === "conflict" || error.code === "validation_failed") return { message: error.message, warnings: 0 };
    throw error;
  }
}

const GONE = "the matching prospect was changed or deleted during the import";

/** Returns whether the prospect still has the key by which the import found it. A user may have changed the key since. */
const hasKeyOf = (by: MatchBy, current: StoredProspect, { sourceId, emailAddress }: FilledCells): boolean =>
  by === "id" || keyOf(by, current) === keyOf(by, { id: current.id, sourceId, emailAddress });

function patchOf(
  current: StoredProspect,
  { filled, lenient }: Pick<RowChange, "filled" | "lenient">,
  { statuses, users }: Dictionary,
): ProspectPatch {
  const { name, phoneNumber, emailAddress, lat, lng, source = null, sourceId, statusId, assignedToUserId } = filled;
  // A prospect may keep an inactive status or user, but must not get a different inactive one.
  if (statusId !== null && statusId !== current.statusId && statuses.get(statusId)?.isActive !== true) {
    throw new ApiError("conflict", "status: must be the value of an active status");
  }
  const isReassigned = assignedToUserId !== null && assignedToUserId !== current.assignedToUserId;
  if (isReassigned && users.get(assignedToUserId)?.isActive !== true) {
    throw new ApiError("conflict", "assignedTo: must be the e-mail of an active user");
  }
  return {
    name: name ?? undefined,
    phoneNumber: phoneNumber ?? undefined,
    secondaryPhoneNumber: filled.secondaryPhoneNumber ?? undefined,
    emailAddress: emailAddress ?? undefined,
    lat: lat ?? undefined,
    lng: lng ?? undefined,
    source: source ?? undefined,
    sourceId: sourceId ?? undefined,
    currentStatusId: statusId ?? undefined,
    assignedToUserId: assignedToUserId ?? undefined,
    customFieldData: filled.customFieldData ?? undefined,
    address: addressOf(current, filled, lenient),
  };
}

/** Undefined if the row does not change the address, so that the prospect keeps a `formattedAddress` that a client has sent. */
function addressOf(
  current: StoredProspect,
  filled: FilledCells,
  lenient: RowChange["lenient"],
): NewAddress | undefined {
  const { address } = current;
  const { address1, address2, city, state, zip } = { ...address, ...filled.address };
  const parts = addressColumns.filter((part) => filled.address[part] !== undefined);
  if (parts.every((part) => filled.address[part] === address?.[part])) return undefined;
  if (address1 === undefined || city === undefined || state === undefined || zip === undefined) {
    if (leftOut(current, filled, lenient) > 0) return undefined;
    const missing = Object.entries({ address1, city, state, zip }).flatMap(([part, value]) => (value ? [] : [part]));
    throw new ApiError("conflict", `must also have ${missing.join(", ")}, because the prospect has no address`);
  }
  return { address1, address2, city, state, zip };
}

/**
 * Returns how many address cells of the row the import ignores: all of them if they would give the prospect an incomplete address and the
 * file names all their columns by synonyms, otherwise 0.
 */
function leftOut({ address }: StoredProspect, filled: FilledCells, lenient: RowChange["lenient"]): number {
  const { address1, city, state, zip } = { ...address, ...filled.address };
  const parts = addressColumns.filter((part) => filled.address[part] !== undefined);
  const isWhole = [address1, city, state, zip].every((part) => part !== undefined);
  return isWhole || !parts.every((part) => lenient.has(part)) ? 0 : parts.length;
}

/** Undefined if one of the newest notes has the same text, so that importing an export does not create its notes again. */
async function newNoteOf({ table }: ApiContext, { companyId, id }: StoredProspect, { note }: FilledCells) {
  if (note === null) return undefined;
  const newest = { ...attachedKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  for await (const item of table.query(newest)) if (StoredNote.parse(item).body === note) return undefined;
  return note;
}
