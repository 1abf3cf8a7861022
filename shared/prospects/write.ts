/** Creates, changes, tags and deletes prospects. Each write is one transaction over all rows that it changes. */
import { type Caller, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, transactAny } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Write } from "#shared/db/expression.ts";
import { badReference, ConditionFailed, notFound } from "#shared/errors.ts";
import { agendaMoves, agendaRemoval, nextAppointment, nothingUpcoming } from "#shared/prospects/agenda.ts";
import { type Arrival, requireBase } from "#shared/prospects/arrival.ts";
import { reassignedAt } from "#shared/prospects/assignments.ts";
import { clientRecordInUse, clientRecordWrites } from "#shared/prospects/client-records.ts";
import type { NewProspect, ProspectPatch } from "#shared/prospects/input.ts";
import { failsAt, newNote, tooManyNotes } from "#shared/prospects/notes.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { changeOfNotes, readProspectOfFact, readVisibleProspect } from "#shared/prospects/read.ts";
import {
  type AddressChoice,
  requireReferences,
  requireStatus,
  requireUser,
  resolveAddress,
} from "#shared/prospects/references.ts";
import { insertNote, insertProspect, replaceProspect } from "#shared/prospects/rows.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { entriesBeforeNext, historyWrite, pastStatusChange, statusChange } from "#shared/prospects/status-changes.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary, forgetDictionary } from "#shared/reference/dictionary.ts";
import type { TagChoice } from "#shared/reference/input.ts";

/** The `source` of status changes, and of a new prospect without one. */
const DEFAULT_SOURCE = "api";
/** The `source` of prospects and status changes that come from an import. */
export const IMPORT_SOURCE = "csv-import";

/** Tries again if the requested status, user or address changes at the same time. */
export const createProspect = (
  context: ApiContext,
  caller: Caller,
  input: NewProspect,
  arrival: Arrival = {},
): Promise<Prospect> =>
  optimistic(() =>
    create(context, caller, input, arrival).catch((error: unknown) => {
      if (error instanceof ConditionFailed) forgetDictionary(context, caller.companyId);
      throw error;
    }),
  );

/**
 * With a supply of ids, a cached dictionary and no `addressId`, no read is needed before the transaction. It checks itself that the
 * requested status and user have not changed since the dictionary was read.
 */
async function create(context: ApiContext, caller: Caller, input: NewProspect, arrival: Arrival): Promise<Prospect> {
  const { companyId, userId } = caller;
  const { currentStatusId: statusId = null } = input;
  const [{ dictionary, checks }, id, changeId, { address = null, links }] = await Promise.all([
    requireReferences(context, caller, input),
    context.ids.nextProspect(companyId),
    statusId === null ? null : context.ids.next(),
    resolveAddress(context, caller, input, null),
  ]);
  // A user who sees only assigned prospects must be able to see the new prospect.
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
    ...(input.clientRecordId !== undefined && { clientRecordId: input.clientRecordId }),
  };
  const origin = { ...arrival, source: DEFAULT_SOURCE };
  if (changeId !== null) prospect.lastStatusChange = statusChange(changeId, prospect, null, dictionary, origin);
  // This write must be the last one. If the transaction fails at its index, another prospect already has the `clientRecordId`.
  const others = [...insertProspect(prospect), ...checks, ...links(id, now)];
  const made = presentProspect(prospect, undefined, dictionary);
  await context.commit([...others, ...clientRecordWrites(prospect)], made, prospect).catch((error: unknown) => {
    throw prospect.clientRecordId !== undefined && failsAt(error, others.length) ? clientRecordInUse() : error;
  });
  return made;
}

export function updateProspect(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: ProspectPatch,
  arrival: Arrival = {},
): Promise<Prospect> {
  return optimistic(async () => {
    const [{ prospect: current, isPast }, dictionary] = await Promise.all([
      readProspectOfFact(context, caller, id, arrival.occurredAt),
      currentDictionary(context, caller.companyId),
    ]);
    const shown = (prospect: StoredProspect) => presentCurrent(context, prospect, dictionary);
    if (isPast) return shown(await writePastStatus(context, caller, current, patch, dictionary, arrival));
    await requireBase(arrival, current, () => shown(current));
    return shown(await writeChange(context, caller, current, { patch, arrival }, dictionary));
  });
}

const presentCurrent = async (
  { table, clock }: ApiContext,
  prospect: StoredProspect,
  dictionary: Dictionary,
): Promise<Prospect> => presentProspect(prospect, await nextAppointment(table, prospect, clock.now()), dictionary);

/**
 * Adds a status change that the caller made while the prospect was assigned to the caller. Throws `not_found` if the patch has no status or
 * any other field, because the caller may not see the prospect now.
 */
async function writePastStatus(
  context: ApiContext,
  { userId }: Caller,
  current: StoredProspect,
  { currentStatusId: statusId, ...others }: ProspectPatch,
  dictionary: Dictionary,
  { occurredAt }: Arrival,
): Promise<StoredProspect> {
  if (statusId === undefined || Object.values(others).some((value) => value !== undefined)) throw notFound("prospect");
  if (statusId !== null) requireStatus(dictionary, statusId);
  const origin = { occurredAt, source: DEFAULT_SOURCE };
  const { next, writes } = await pastStatusChange(context, userId, current, statusId, dictionary, origin);
  await context.commit(writes, undefined, next);
  return next;
}

export interface Change {
  readonly patch?: ProspectPatch;
  /** All tags that the prospect has after the change. Each must exist in the company. */
  readonly tagIds?: readonly number[] | undefined;
  readonly note?: string | undefined;
  readonly arrival?: Arrival;
  /** The id of the import that makes the change. */
  readonly importId?: string;
}

/**
 * Changes a prospect for an import. Does nothing if this import has already changed it, so a repeated import does not undo later changes.
 * Throws ApiError if the caller cannot see the prospect or the prospect has reached a limit.
 */
export const changeByImport = (
  context: ApiContext,
  caller: Caller,
  id: number,
  importId: string,
  dictionary: Dictionary,
  changeOf: (current: StoredProspect) => Promise<Change>,
): Promise<StoredProspect> =>
  optimistic(async () => {
    const current = await readVisibleProspect(context, caller, id);
    if (current.changedByImport === importId) return current;
    const change = { ...(await changeOf(current)), importId };
    // `context.commit` also stores the response for a repetition of the request. Only the last transaction of an import may store it.
    const commit: ApiContext["commit"] = (writes) => transactAny(context.table, writes);
    await writeChange({ ...context, commit }, caller, current, change, dictionary);
    return current;
  });

/** Returns `current` if no field changes. */
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
  if (isSame && note === undefined) {
    await context.commit([], undefined, current);
    return current;
  }
  const own = isSame
    ? [changeOfNotes(caller, current.id, context.clock.now(), current)]
    : await changeWrites(context, current, next, links, dictionary, change.arrival);
  // The first write of `insertNote` must come first. A failure at index 0 is reported as too many notes.
  const writes = note === undefined ? own : [...insertNote(note, next.assignedToUserId), ...own];
  await context.commit(writes, undefined, next).catch((error: unknown) => {
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
 * Also changes `next`. If the status changes, `next` gets the new status change, and the previous one moves to a separate row. If the
 * assignee changes, `next` gets the previous assignment as a past one.
 */
export async function changeWrites(
  context: ApiContext,
  current: StoredProspect,
  next: StoredProspect,
  links: AddressChoice["links"],
  dictionary: Dictionary,
  arrival: Arrival = {},
  source = next.changedByImport === current.changedByImport ? DEFAULT_SOURCE : IMPORT_SOURCE,
): Promise<Write[]> {
  const statusChanged = next.statusId !== current.statusId;
  if (statusChanged) {
    const pastChanges = entriesBeforeNext(current);
    if (pastChanges > 0) next.pastStatusChanges = pastChanges;
    const origin = { ...arrival, source };
    next.lastStatusChange = statusChange(await context.ids.next(), next, current.statusId, dictionary, origin);
  }
  if (next.assignedToUserId !== current.assignedToUserId) {
    Object.assign(next, reassignedAt(current, Date.parse(next.updatedAt)));
  }
  const writes = [...replaceProspect(current, next), ...(await agendaMoves(context.table, current, next))];
  if (statusChanged && current.lastStatusChange !== null) writes.push(historyWrite(current, current.lastStatusChange));
  return [...writes, ...links(next.id, next.updatedAt)];
}

/** Hides the prospect from every read, but keeps its rows. */
export function deleteProspect(context: ApiContext, caller: Caller, id: number, arrival: Arrival = {}): Promise<void> {
  return optimistic(async () => {
    const current = await readVisibleProspect(context, caller, id);
    await requireBase(arrival, current, async () =>
      presentCurrent(context, current, await currentDictionary(context, caller.companyId)),
    );
    const now = iso(context.clock.now());
    const moved = { updatedAt: now, updatedBy: caller.userId, version: current.version + 1 };
    const gone = { ...current, ...moved, deletedAt: now };
    await context.commit([...replaceProspect(current, gone), ...agendaRemoval(current)], undefined, gone);
  });
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

/** Rows are plain data with a fixed order of fields, so equal JSON texts mean equal content. */
const sameProspect = (a: StoredProspect, b: StoredProspect): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Writes nothing if the prospect already shows these tags in this order. */
export function setTags(
  context: ApiContext,
  caller: Caller,
  id: number,
  { tagIds }: TagChoice,
  arrival: Arrival = {},
): Promise<Prospect> {
  return optimistic(async () => {
    const [current, dictionary] = await Promise.all([
      readVisibleProspect(context, caller, id),
      currentDictionary(context, caller.companyId),
    ]);
    await requireBase(arrival, current, () => presentCurrent(context, current, dictionary));
    requireTags(dictionary, tagIds);
    const next = await writeChange(context, caller, current, { tagIds: [...new Set(tagIds)] }, dictionary);
    return presentCurrent(context, next, dictionary);
  });
}

/** Throws `validation_failed` with a pointer to the first occurrence of each unknown tag. */
function requireTags({ tags }: Dictionary, tagIds: readonly number[]): void {
  const unknown = [...new Set(tagIds)].flatMap((id) => (tags.has(id) ? [] : [`tagIds/${tagIds.indexOf(id)}`]));
  if (unknown.length > 0) throw badReference("a tag", ...unknown);
}

/** The row may also contain ids of deleted tags, which are not shown. */
function isShown({ tagIds }: StoredProspect, wanted: readonly number[], { tags }: Dictionary): boolean {
  return tagIds.filter((id) => tags.has(id)).join() === wanted.join();
}
