/** Creates, changes, tags and deletes prospects. Each write is one transaction over all rows that it changes. */
import { type Caller, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { absent } from "#shared/db/expression.ts";
import { ApiError, badReference, ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { agendaMoves, agendaRemoval, nextAppointment, nothingUpcoming } from "#shared/prospects/agenda.ts";
import type { NewProspect, ProspectPatch } from "#shared/prospects/input.ts";
import { failsAt, newNote, tooManyNotes } from "#shared/prospects/notes.ts";
import { presentProspect, statusSummary } from "#shared/prospects/present.ts";
import { changeOfNotes, readVisibleProspect } from "#shared/prospects/read.ts";
import {
  type AddressChoice,
  requireReferences,
  requireStatus,
  requireUser,
  resolveAddress,
} from "#shared/prospects/references.ts";
import { insertNote, insertProspect, replaceProspect } from "#shared/prospects/rows.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import type { LastStatusChange, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary, forgetDictionary } from "#shared/reference/dictionary.ts";
import type { TagChoice } from "#shared/reference/input.ts";

/** The `source` of a prospect that the API creates, if the request contains none. */
const DEFAULT_SOURCE = "api";
/** The `source` of prospects and status changes that come from an import. */
export const IMPORT_SOURCE = "csv-import";

/** Creates a prospect. Tries again if its status, user or address changes concurrently. */
export const createProspect = (context: ApiContext, caller: Caller, input: NewProspect): Promise<Prospect> =>
  optimistic(() =>
    create(context, caller, input).catch((error: unknown) => {
      if (error instanceof ConditionFailed) forgetDictionary(context, caller.companyId);
      throw error;
    }),
  );

/** Makes one round trip if ids and names are cached, because the transaction itself checks that the names are current. */
async function create(context: ApiContext, caller: Caller, input: NewProspect): Promise<Prospect> {
  const { companyId, userId } = caller;
  const { currentStatusId: statusId = null } = input;
  const [{ dictionary, checks }, id, changeId, { address = null, links }] = await Promise.all([
    requireReferences(context, caller, input),
    context.ids.nextProspect(companyId),
    statusId === null ? null : context.ids.next(),
    resolveAddress(context, caller, input, null),
  ]);
  // A user who sees only assigned prospects could not see an unassigned one, so the prospect is assigned to that user.
  const assignedToUserId = input.assignedToUserId ?? (may(caller, "canViewAllProspects") ? null : userId);
  const now = iso(context.clock.now());
  const prospect: StoredProspect = {
    type: "prospect",
    id,
    companyId,
    ...givenFields(input, emptyFields),
    address,
    statusId,
    lastStatusChange: null,
    assignedToUserId,
    assignedByUserId: assignedToUserId === null ? null : userId,
    tagIds: [],
    ...nothingUpcoming,
    sourceCreatedAt: input.sourceCreatedAt ?? null,
    createdAt: now,
    updatedAt: now,
    createdBy: userId,
    updatedBy: userId,
    version: 1,
  };
  if (changeId !== null) prospect.lastStatusChange = statusChange(changeId, prospect, null, dictionary);
  const writes = [...insertProspect(prospect), ...checks, ...links(id, now)];
  const made = presentProspect(prospect, undefined, dictionary);
  await context.commit(writes, made);
  return made;
}

export function updateProspect(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: ProspectPatch,
): Promise<Prospect> {
  return optimistic(async () => {
    const [current, dictionary] = await Promise.all([
      readVisibleProspect(context, caller, id),
      currentDictionary(context, caller.companyId),
    ]);
    const next = await writeChange(context, caller, current, { patch }, dictionary);
    return presentProspect(next, await nextAppointment(context.table, next, context.clock.now()), dictionary);
  });
}

export interface Change {
  readonly patch?: ProspectPatch;
  /** All tags that the prospect has after the change. Each must exist in the company. */
  readonly tagIds?: readonly number[] | undefined;
  /** The text of a new note. */
  readonly note?: string | undefined;
  /** The id of the import that makes the change. */
  readonly importId?: string;
}

/**
 * Changes a prospect for an import, in one transaction with its new note. Does nothing if this import has already changed the prospect,
 * so that a repeated import does not undo later changes of users. Throws ApiError if the caller cannot see the prospect or the prospect
 * has reached a limit.
 */
export const changeByImport = (
  context: ApiContext,
  caller: Caller,
  id: number,
  importId: string,
  dictionary: Dictionary,
  changeOf: (current: StoredProspect) => Promise<Change>,
): Promise<void> =>
  optimistic(async () => {
    const current = await readVisibleProspect(context, caller, id);
    if (current.changedByImport === importId) return;
    await writeChange(context, caller, current, { ...(await changeOf(current)), importId }, dictionary);
  });

/** Writes the change, the status history and the new note. Returns the changed prospect, or `current` if no field changes. */
async function writeChange(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  change: Change,
  dictionary: Dictionary,
): Promise<StoredProspect> {
  const { next, links } = await changed(context, caller, current, change, dictionary);
  const isSame = next === current;
  const note = change.note === undefined ? undefined : await newNote(context, caller, current.id, change.note);
  if (isSame && note === undefined) return next;
  const own = isSame
    ? [changeOfNotes(caller, current.id, context.clock.now(), current.importId)]
    : await changeWrites(context, current, next, links, dictionary);
  // The first write of `insertNote` checks the number of notes. It must come first in the transaction, because a failure at index 0 is
  // reported as too many notes.
  const writes = note === undefined ? own : [...insertNote(note), ...own];
  await context.table.transact(writes).catch((error: unknown) => {
    throw note !== undefined && failsAt(error, 0) ? tooManyNotes() : error;
  });
  return next;
}

async function changed(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  { patch = {}, tagIds, importId }: Change,
  dictionary: Dictionary,
): Promise<{ next: StoredProspect; links: AddressChoice["links"] }> {
  const { currentStatusId: statusId = current.statusId, assignedToUserId = current.assignedToUserId } = patch;
  if (statusId !== null && statusId !== current.statusId) requireStatus(dictionary, statusId);
  const reassigned = assignedToUserId !== current.assignedToUserId;
  if (assignedToUserId !== null && reassigned) requireUser(dictionary, "assignedToUserId", assignedToUserId);
  if (patch.assignedByUserId !== undefined) requireUser(dictionary, "assignedByUserId", patch.assignedByUserId);
  const { address = current.address, links } = await resolveAddress(context, caller, patch, current.address);
  const next: StoredProspect = {
    ...current,
    ...givenFields(patch, current),
    address,
    statusId,
    assignedToUserId,
    assignedByUserId: patch.assignedByUserId ?? (reassigned ? caller.userId : current.assignedByUserId),
    tagIds: tagIds === undefined || isShown(current, tagIds, dictionary) ? current.tagIds : [...tagIds],
  };
  if (sameProspect(current, next)) return { next: current, links };
  const moved = { updatedAt: iso(context.clock.now()), updatedBy: caller.userId, version: current.version + 1 };
  return { next: { ...next, ...moved, ...(importId !== undefined && { changedByImport: importId }) }, links };
}

/**
 * Returns the writes of a change. If the status changes, the change becomes part of `next`, and the previous status change moves to a
 * separate row.
 */
async function changeWrites(
  context: ApiContext,
  current: StoredProspect,
  next: StoredProspect,
  links: AddressChoice["links"],
  dictionary: Dictionary,
): Promise<Write[]> {
  const statusChanged = next.statusId !== current.statusId;
  const pastChanges = (current.pastStatusChanges ?? 0) + (current.lastStatusChange === null ? 0 : 1);
  if (statusChanged) {
    if (pastChanges >= limits.statusChangesPerProspect) {
      throw new ApiError("conflict", `The status of a prospect may change ${limits.statusChangesPerProspect} times.`);
    }
    if (pastChanges > 0) next.pastStatusChanges = pastChanges;
    const source = next.changedByImport === current.changedByImport ? DEFAULT_SOURCE : IMPORT_SOURCE;
    next.lastStatusChange = statusChange(await context.ids.next(), next, current.statusId, dictionary, source);
  }
  const writes = [...replaceProspect(current, next), ...(await agendaMoves(context.table, current, next))];
  if (statusChanged && current.lastStatusChange !== null) writes.push(historyWrite(current, current.lastStatusChange));
  return [...writes, ...links(next.id, next.updatedAt)];
}

/** Deletes a prospect: hides it from every read, but keeps its rows. */
export function deleteProspect(context: ApiContext, caller: Caller, id: number): Promise<void> {
  return optimistic(async () => {
    const current = await readVisibleProspect(context, caller, id);
    const now = iso(context.clock.now());
    const moved = { updatedAt: now, updatedBy: caller.userId, version: current.version + 1 };
    const gone = { ...current, ...moved, deletedAt: now };
    await context.table.transact([...replaceProspect(current, gone), ...agendaRemoval(current)]);
  });
}

function statusChange(
  id: number,
  { statusId, updatedBy, updatedAt, version }: StoredProspect,
  previousStatusId: number | null,
  dictionary: Dictionary,
  source = DEFAULT_SOURCE,
): LastStatusChange {
  const summary = (of: number | null) => (of === null ? null : statusSummary(dictionary.statuses.get(of)));
  return {
    id,
    status: summary(statusId),
    previousStatus: summary(previousStatusId),
    changedBy: updatedBy,
    source,
    createdAt: updatedAt,
    version,
  };
}

function historyWrite({ companyId, id: prospectId }: StoredProspect, change: LastStatusChange): Write {
  const row: StoredStatusChange = { ...change, type: "history", prospectId };
  return { put: { ...attachedKeys.history(companyId, prospectId, change.version), ...row }, when: absent };
}

const emptyFields = {
  name: null,
  phoneNumber: null,
  secondaryPhoneNumber: null,
  emailAddress: null,
  lat: null,
  lng: null,
  source: DEFAULT_SOURCE,
  sourceId: null,
  customFieldData: null,
};

type PlainFields = Pick<StoredProspect, keyof typeof emptyFields>;

function givenFields(input: ProspectPatch | NewProspect, otherwise: PlainFields): PlainFields {
  const { customFieldData: custom } = input;
  return {
    name: input.name === undefined ? otherwise.name : input.name,
    phoneNumber: input.phoneNumber === undefined ? otherwise.phoneNumber : input.phoneNumber,
    secondaryPhoneNumber:
      input.secondaryPhoneNumber === undefined ? otherwise.secondaryPhoneNumber : input.secondaryPhoneNumber,
    emailAddress: input.emailAddress === undefined ? otherwise.emailAddress : input.emailAddress,
    lat: input.lat === undefined ? otherwise.lat : input.lat,
    lng: input.lng === undefined ? otherwise.lng : input.lng,
    source: input.source === undefined ? otherwise.source : input.source,
    sourceId: input.sourceId === undefined ? otherwise.sourceId : input.sourceId,
    customFieldData: custom === undefined ? otherwise.customFieldData : custom === null ? null : JSON.stringify(custom),
  };
}

/** Equal JSON texts mean equal content, because rows are plain data with a fixed order of fields. */
const sameProspect = (a: StoredProspect, b: StoredProspect): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Replaces all tags. Writes nothing if the prospect already shows these tags in this order. */
export function setTags(context: ApiContext, caller: Caller, id: number, { tagIds }: TagChoice): Promise<Prospect> {
  return optimistic(async () => {
    const [current, dictionary] = await Promise.all([
      readVisibleProspect(context, caller, id),
      currentDictionary(context, caller.companyId),
    ]);
    requireTags(dictionary, tagIds);
    const next = await writeChange(context, caller, current, { tagIds: [...new Set(tagIds)] }, dictionary);
    return presentProspect(next, await nextAppointment(context.table, next, context.clock.now()), dictionary);
  });
}

/** Throws `validation_failed` with a pointer to the first occurrence of each unknown tag. */
function requireTags({ tags }: Dictionary, tagIds: readonly number[]): void {
  const unknown = [...new Set(tagIds)].flatMap((id) => (tags.has(id) ? [] : [`tagIds/${tagIds.indexOf(id)}`]));
  if (unknown.length > 0) throw badReference("a tag", ...unknown);
}

/**
 * Returns true if the prospect already shows the wanted tags in this order. The row may also contain ids of deleted tags, which are not
 * shown.
 */
function isShown({ tagIds }: StoredProspect, wanted: readonly number[], { tags }: Dictionary): boolean {
  return tagIds.filter((id) => tags.has(id)).join() === wanted.join();
}
