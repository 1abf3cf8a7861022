/** Creates, changes, tags and deletes prospects. */
import { type Caller, may } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, commitTo } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import { carryOut, type Plan, unchanged } from "#shared/db/plan.ts";
import { ApiError, badReference, notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { agendaMoves, agendaRemoval, nextAppointment, nothingUpcoming } from "#shared/prospects/agenda.ts";
import { reassignedAt } from "#shared/prospects/assignments.ts";
import { clientRecordInUse, clientRecordWrites, prospectInTheWay } from "#shared/prospects/client-records.ts";
import type { NewProspect, ProspectPatch } from "#shared/prospects/input.ts";
import { newNote } from "#shared/prospects/notes.ts";
import { presentProspect, statusSummary } from "#shared/prospects/present.ts";
import {
  type Arrival,
  changeOfNotes,
  findVisibleProspect,
  isInScope,
  readVisibleProspect,
  requireBase,
} from "#shared/prospects/read.ts";
import {
  type AddressChoice,
  requireReferences,
  requireStatus,
  requireUser,
  resolveAddress,
} from "#shared/prospects/references.ts";
import { insertNote, insertProspect, pastFact, replaceProspect } from "#shared/prospects/rows.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import type { LastStatusChange, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import { currentDictionary, type Dictionary, forgetDictionary } from "#shared/reference/dictionary.ts";
import type { TagChoice } from "#shared/reference/input.ts";

/** The `source` of status changes, and of a new prospect without one. */
const DEFAULT_SOURCE = "api";
export const IMPORT_SOURCE = "csv-import";

/** Reads nothing before the transaction if this process has ids in reserve and a cached dictionary, and the input has no `addressId`. */
export async function createProspect(
  context: ApiContext,
  caller: Caller,
  input: NewProspect,
  arrival: Arrival = {},
): Promise<Plan<Prospect>> {
  const { companyId } = caller;
  const { currentStatusId: statusId = null, assignedToUserId = null, sourceCreatedAt = null, clientRecordId } = input;
  const [{ dictionary, checks }, id, changeId, { address = null, links }] = await Promise.all([
    requireReferences(context, caller, input),
    context.ids.nextProspect(companyId),
    statusId === null ? null : context.ids.next(),
    resolveAddress(context, caller, input, null),
  ]);
  const now = iso(context.clock.now());
  const own = { id, address, statusId, assignedToUserId, sourceCreatedAt, clientRecordId };
  const fields = newProspect(caller, now, { ...givenFields(input, emptyFields), ...own });
  const origin = { dictionary, source: DEFAULT_SOURCE, occurredAt: arrival.occurredAt };
  const prospect =
    changeId === null ? fields : { ...fields, lastStatusChange: statusChange(changeId, fields, null, origin) };
  return {
    writes: [...insertProspect(prospect), ...checks, ...links(id, now), ...clientRecordWrites(prospect)],
    answer: presentProspect(prospect, undefined, dictionary),
    written: prospect,
    refused: async (failed) => {
      forgetDictionary(context, companyId);
      const existingId = prospectInTheWay(failed);
      if (existingId === undefined) return undefined;
      throw clientRecordInUse((await findVisibleProspect(context, caller, existingId))?.id);
    },
  };
}

type GivenFields = PlainFields &
  Pick<StoredProspect, "id" | "address" | "statusId" | "assignedToUserId"> &
  Partial<Pick<StoredProspect, "tagIds" | "sourceCreatedAt" | "clientRecordId" | "importId">>;

/** A user who sees only assigned prospects becomes the assignee if none is given. */
export function newProspect(caller: Caller, now: string, given: GivenFields): StoredProspect {
  const { companyId, userId } = caller;
  const assignedToUserId = given.assignedToUserId ?? (may(caller, "canViewAllProspects") ? null : userId);
  return {
    type: "prospect",
    companyId,
    lastStatusChange: null,
    tagIds: [],
    ...nothingUpcoming,
    sourceCreatedAt: null,
    ...given,
    assignedToUserId,
    assignedByUserId: assignedToUserId === null ? null : userId,
    createdAt: now,
    updatedAt: now,
    createdBy: userId,
    updatedBy: userId,
    version: 1,
  };
}

export async function updateProspect(
  context: ApiContext,
  caller: Caller,
  id: number,
  patch: ProspectPatch,
  arrival: Arrival = {},
): Promise<Plan<Prospect>> {
  const [current, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, id, arrival.occurredAt),
    currentDictionary(context, caller.companyId),
  ]);
  const origin = { dictionary, source: DEFAULT_SOURCE, occurredAt: arrival.occurredAt };
  if (!isInScope(caller, current)) {
    return shown(context, await pastStatus(context, caller, current, patch, origin), dictionary);
  }
  await requireBase(arrival, current, () => presentCurrent(context, current, dictionary));
  return shown(context, await change(context, caller, current, { patch }, origin), dictionary);
}

/** The plan fails if the prospect has changed since it was read. */
export async function updateRead(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  patch: ProspectPatch,
): Promise<Plan<Prospect>> {
  const dictionary = await currentDictionary(context, caller.companyId);
  const plan = await change(context, caller, current, { patch }, { dictionary, source: DEFAULT_SOURCE });
  return shown(context, plan, dictionary);
}

const shown = async (
  context: ApiContext,
  { writes, answer: prospect }: Plan<StoredProspect>,
  dictionary: Dictionary,
): Promise<Plan<Prospect>> => {
  return { writes, answer: await presentCurrent(context, prospect, dictionary), written: prospect };
};

const presentCurrent = async (
  { table, clock }: ApiContext,
  prospect: StoredProspect,
  dictionary: Dictionary,
): Promise<Prospect> => presentProspect(prospect, await nextAppointment(table, prospect, clock.now()), dictionary);

interface Origin extends Pick<Arrival, "occurredAt"> {
  readonly dictionary: Dictionary;
  readonly source: string;
}

/**
 * Adds a status change that the caller made while the prospect was assigned to the caller. The prospect keeps its present status. The
 * previous status of the entry is null, because it is not known. Throws `not_found` if the patch has any other field, because the caller
 * does not see the prospect now.
 */
async function pastStatus(
  { ids, clock }: ApiContext,
  { userId }: Caller,
  current: StoredProspect,
  { currentStatusId: statusId, ...others }: ProspectPatch,
  origin: Origin,
): Promise<Plan<StoredProspect>> {
  if (statusId === undefined || Object.values(others).some((value) => value !== undefined)) throw notFound("prospect");
  if (statusId !== null) requireStatus(origin.dictionary, statusId);
  entriesBeforeNext(current);
  const { pastStatusChanges = 0 } = current;
  const moved = { updatedAt: iso(clock.now()), version: current.version + 1 };
  const next = { ...current, ...moved, pastStatusChanges: pastStatusChanges + 1 };
  const entry = statusChange(await ids.next(), { ...next, statusId, updatedBy: userId }, null, origin);
  const row = replaceProspect(current, next, undefined, { fact: pastFact(entry) });
  return { writes: [...row, historyWrite(next, entry)], answer: next };
}

export interface Change {
  readonly patch?: ProspectPatch;
  /** All tags of the prospect after the change. Each must exist. */
  readonly tagIds?: readonly number[] | undefined;
  readonly note?: string | undefined;
  readonly importId?: string;
}

/** Returns the prospect before the change. A second call for an import changes nothing, so a repeated import undoes no later changes. */
export async function changeByImport(
  context: ApiContext,
  caller: Caller,
  id: number,
  { importId, dictionary }: { readonly importId: string; readonly dictionary: Dictionary },
  changeOf: (current: StoredProspect) => Promise<Change>,
): Promise<StoredProspect> {
  const plan = async (): Promise<Plan<StoredProspect>> => {
    const current = await readVisibleProspect(context, caller, id);
    if (current.changedByImport === importId) return unchanged(current);
    const wanted = { ...(await changeOf(current)), importId };
    const { writes } = await change(context, caller, current, wanted, { dictionary, source: IMPORT_SOURCE });
    return { writes, answer: current };
  };
  return (await carryOut(plan, commitTo(context.table))).answer;
}

async function change(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  wanted: Change,
  origin: Origin,
): Promise<Plan<StoredProspect>> {
  const { fields, links } = await changed(context, caller, current, wanted, origin.dictionary);
  const note = wanted.note === undefined ? undefined : await newNote(context, caller, current.id, wanted.note);
  const noteWrites = note === undefined ? [] : insertNote(note, fields.assignedToUserId);
  if (fields !== current) {
    const { next, writes } = await nextVersion(context, current, fields, origin);
    return { writes: [...noteWrites, ...writes, ...links(next.id, next.updatedAt)], answer: next };
  }
  if (note === undefined) return unchanged(current);
  const counted = changeOfNotes(current, context.clock.now());
  return { writes: [...noteWrites, counted], answer: current };
}

/** Returns `current` if no field changes. */
async function changed(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  { patch = {}, tagIds, importId }: Change,
  dictionary: Dictionary,
): Promise<{ fields: StoredProspect; links: AddressChoice["links"] }> {
  const { currentStatusId: statusId = current.statusId, assignedToUserId = current.assignedToUserId } = patch;
  if (statusId !== null && statusId !== current.statusId) requireStatus(dictionary, statusId);
  const reassigned = assignedToUserId !== current.assignedToUserId;
  if (assignedToUserId !== null && reassigned) requireUser(dictionary, "assignedToUserId", assignedToUserId);
  if (patch.assignedByUserId !== undefined) requireUser(dictionary, "assignedByUserId", patch.assignedByUserId);
  const { address = current.address, links } = await resolveAddress(context, caller, patch, current.address);
  const fields: StoredProspect = {
    ...current,
    ...givenFields(patch, current),
    address,
    statusId,
    assignedToUserId,
    assignedByUserId: patch.assignedByUserId ?? (reassigned ? caller.userId : current.assignedByUserId),
    tagIds: tagIds === undefined || isShown(current, tagIds, dictionary) ? current.tagIds : [...tagIds],
  };
  if (sameProspect(current, fields)) return { fields: current, links };
  const moved = { updatedAt: iso(context.clock.now()), updatedBy: caller.userId, version: current.version + 1 };
  return { fields: { ...fields, ...moved, changedByImport: importId ?? current.changedByImport }, links };
}

/**
 * A new status moves the previous status change from the prospect's row to a row of the history. A new assignee moves the agenda, and makes
 * the previous assignment a past one.
 */
export async function nextVersion(
  { ids, table }: ApiContext,
  current: StoredProspect,
  fields: StoredProspect,
  origin: Origin,
): Promise<{ next: StoredProspect; writes: Write[] }> {
  const { lastStatusChange: last, statusId } = current;
  const isReassigned = fields.assignedToUserId !== current.assignedToUserId;
  const assigned = isReassigned ? { ...fields, ...reassignedAt(current, Date.parse(fields.updatedAt)) } : fields;
  if (fields.statusId === statusId) return replacing(table, current, assigned);
  const pastStatusChanges = entriesBeforeNext(current) || undefined;
  const lastStatusChange = statusChange(await ids.next(), fields, statusId, origin);
  const { next, writes } = await replacing(table, current, { ...assigned, pastStatusChanges, lastStatusChange });
  return { next, writes: last === null ? writes : [...writes, historyWrite(current, last)] };
}

const replacing = async (table: ApiContext["table"], current: StoredProspect, next: StoredProspect) => ({
  next,
  writes: [...replaceProspect(current, next), ...(await agendaMoves(table, current, next))],
});

export function statusChange(
  id: number,
  { statusId, updatedBy, updatedAt, version }: StoredProspect,
  previousStatusId: number | null,
  { dictionary, source, occurredAt }: Origin,
): LastStatusChange {
  const summary = (of: number | null) => (of === null ? null : statusSummary(dictionary.statuses.get(of)));
  return {
    id,
    status: summary(statusId),
    previousStatus: summary(previousStatusId),
    changedBy: updatedBy,
    source,
    createdAt: updatedAt,
    occurredAt,
    version,
  };
}

function historyWrite({ companyId, id: prospectId }: StoredProspect, change: LastStatusChange): Write {
  const row: StoredStatusChange = { ...change, type: "history", prospectId };
  return { put: { ...attachedKeys.history(companyId, prospectId, change.version), ...row }, when: absent };
}

/** Throws `conflict` if the history is full. */
function entriesBeforeNext({ pastStatusChanges = 0, lastStatusChange }: StoredProspect): number {
  const entries = pastStatusChanges + (lastStatusChange === null ? 0 : 1);
  if (entries < limits.statusChangesPerProspect) return entries;
  throw new ApiError("conflict", `The status of a prospect may change ${limits.statusChangesPerProspect} times.`);
}

/** Marks the prospect as deleted, but keeps its rows. */
export async function deleteProspect(
  context: ApiContext,
  caller: Caller,
  id: number,
  arrival: Arrival = {},
): Promise<Plan<{ id: number }>> {
  const current = await readVisibleProspect(context, caller, id);
  await requireBase(arrival, current, async () =>
    presentCurrent(context, current, await currentDictionary(context, caller.companyId)),
  );
  const now = iso(context.clock.now());
  const moved = { updatedAt: now, updatedBy: caller.userId, version: current.version + 1 };
  const gone = { ...current, ...moved, deletedAt: now };
  return { writes: [...replaceProspect(current, gone), ...agendaRemoval(current)], answer: { id }, written: gone };
}

export async function setTags(
  context: ApiContext,
  caller: Caller,
  id: number,
  { tagIds }: TagChoice,
  arrival: Arrival = {},
): Promise<Plan<Prospect>> {
  const [current, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  await requireBase(arrival, current, () => presentCurrent(context, current, dictionary));
  requireTags(dictionary, tagIds);
  const wanted = { tagIds: [...new Set(tagIds)] };
  const origin = { dictionary, source: DEFAULT_SOURCE };
  return shown(context, await change(context, caller, current, wanted, origin), dictionary);
}

/** The error has a pointer to the first occurrence of each unknown tag. */
function requireTags({ tags }: Dictionary, tagIds: readonly number[]): void {
  const unknown = [...new Set(tagIds)].flatMap((id) => (tags.has(id) ? [] : [`tagIds/${tagIds.indexOf(id)}`]));
  if (unknown.length > 0) throw badReference("a tag", ...unknown);
}

/** True if the prospect shows exactly the wanted tags. Deleted tags, whose ids may remain in its row, are not shown. */
function isShown({ tagIds }: StoredProspect, wanted: readonly number[], { tags }: Dictionary): boolean {
  return tagIds.filter((id) => tags.has(id)).join() === wanted.join();
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

/** A null clears a field. A missing field stays as it was. */
function givenFields(input: ProspectPatch | NewProspect, was: PlainFields): PlainFields {
  const { name = was.name, phoneNumber = was.phoneNumber, emailAddress = was.emailAddress } = input;
  const { secondaryPhoneNumber = was.secondaryPhoneNumber, lat = was.lat, lng = was.lng } = input;
  const { source = was.source, sourceId = was.sourceId, customFieldData: custom } = input;
  const customFieldData = custom === undefined ? was.customFieldData : custom === null ? null : JSON.stringify(custom);
  return { name, phoneNumber, secondaryPhoneNumber, emailAddress, lat, lng, source, sourceId, customFieldData };
}

/** Rows are plain data with a fixed order of fields, so equal JSON texts mean equal content. */
const sameProspect = (a: StoredProspect, b: StoredProspect): boolean => JSON.stringify(a) === JSON.stringify(b);
