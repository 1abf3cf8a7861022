/** Reads single prospects, and decides which prospects a caller may see. */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { cachePerTable } from "#shared/cache.ts";
import type { ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import { all, equals, type Item, missing, present, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { QuerySpec, Reads } from "#shared/db/reads.ts";
import { notFound, Outdated } from "#shared/errors.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import * as limits from "#shared/limits.ts";
import { wasAssigned } from "#shared/prospects/assignments.ts";
import type { ProspectDetail } from "#shared/prospects/detail.ts";
import { presentDetail } from "#shared/prospects/present.ts";
import { rowVersionOf } from "#shared/prospects/record-version.ts";
import {
  StoredAppointment,
  StoredNote,
  type StoredProspect,
  StoredStatusChange,
  storedProspect,
} from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** The company is not checked, because every key contains the caller's company. */
export function isInScope(caller: Caller, { assignedToUserId }: Pick<StoredProspect, "assignedToUserId">): boolean {
  const assignee = visibleAssignee(caller);
  return assignee === undefined || assignedToUserId === assignee;
}

export const isVisible = (caller: Caller, prospect: Pick<StoredProspect, "deletedAt" | "assignedToUserId">): boolean =>
  prospect.deletedAt === undefined && isInScope(caller, prospect);

/**
 * Returns a write for the transaction of a note. The prospect's row records that its notes have changed, so that the row alone shows
 * whether an ETag is current. The write causes no event, because no field changes. It fails if the prospect was deleted or has got another
 * assignee since it was read.
 */
export const changeOfNotes = ({ companyId, id, assignedToUserId }: StoredProspect, nowMs: number): Write => ({
  ...noteOn(companyId, id, nowMs),
  when: all(
    present,
    missing("deletedAt"),
    assignedToUserId === null ? missing("assignedToUserId") : equals("assignedToUserId", assignedToUserId),
  ),
});

/** Like `changeOfNotes`, but fails after any change of the prospect since it was read. */
export const changeOfNotesOf = ({ companyId, id, version }: StoredProspect, nowMs: number): Write => ({
  ...noteOn(companyId, id, nowMs),
  when: equals("version", version),
});

const noteOn = (companyId: number, prospectId: number, nowMs: number) => ({
  update: keys.prospect(companyId, prospectId),
  change: { add: { notesVersion: 1 }, set: { notesChangedAt: nowMs } },
});

/** The imports that this process knows to be completed, with the value of the counter `learned` when the process learned it. */
const completedImports = cachePerTable<number>({ maxBytes: 1_000_000, bytesOf: () => 100 });
let learned = 0;

const State = z.object({ state: z.string() });

/** True if the import is completed or has no row. An id that is no number belongs to no import, so the result is also true. */
export async function isPublished(table: Reads, companyId: number, importId: string | undefined): Promise<boolean> {
  if (!isOfImport(importId)) return true;
  const name = `${companyId}#${importId}`;
  if (completedImports(table).get(name) !== undefined) return true;
  const item = await table.get(keys.import(companyId, Number(importId)));
  if (item !== undefined && State.parse(item).state !== "completed") return false;
  completedImports(table).set(name, 1, learned++);
  return true;
}

const IdRange = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

/**
 * Returns the blocks of 128 ids that a company has reserved in these ranges, without those of unfinished imports. The row of a range is
 * written before its first record, so no record that exists now is missed.
 */
export async function publishedBlocks(table: Reads, ranges: QuerySpec): Promise<number[]> {
  const blocks: number[] = [];
  for await (const item of table.query(ranges)) {
    const { from, to, importId } = IdRange.parse(item);
    if (importId === undefined) for (let block = from; block <= to; block++) blocks.push(block);
  }
  return blocks;
}

const isOfImport = (importId: string | undefined): importId is string =>
  importId !== undefined && /^\d+$/.test(importId);

/** True if no import created the prospect, or if this process knew that the import was completed when `learned` had the value `before`. */
const wasPublished = (table: Reads, { companyId, importId }: StoredProspect, before: number): boolean =>
  !isOfImport(importId) || (completedImports(table).get(`${companyId}#${importId}`)?.value ?? before) < before;

/** Throws `not_found` if the caller does not see the prospect now, and did not see it at `occurredAt`. */
export const readVisibleProspect = async (
  context: ReadContext,
  caller: Caller,
  id: number,
  occurredAt?: string,
): Promise<StoredProspect> => (await readVisible(context, caller, id, occurredAt)).prospect;

/** Undefined if the caller does not see the prospect. */
export const findVisibleProspect = async (
  { table }: ReadContext,
  caller: Caller,
  id: number,
): Promise<StoredProspect | undefined> =>
  visibleIn(table, caller, await table.get(keys.prospect(caller.companyId, id)));

/** The fields of a change that a device made while it was offline. Other changes have none of them. */
export interface Arrival {
  /** The time of the change on the device. It is neither in the future nor too old. */
  readonly occurredAt?: string | undefined;
  /** The version of the record that the device had when the user changed it. */
  readonly baseVersion?: number | undefined;
}

/** Throws `Outdated` with the current record if it has another version than `baseVersion`. */
export async function requireBase(
  { baseVersion }: Arrival,
  current: { readonly id: number; readonly version: number },
  present: () => unknown,
): Promise<void> {
  if (baseVersion === undefined || rowVersionOf(baseVersion) === current.version) return;
  throw new Outdated(current, await present());
}

async function readVisible({ table }: ReadContext, caller: Caller, id: number, occurredAt?: string) {
  const item = await table.get(keys.prospect(caller.companyId, id));
  const prospect = await visibleIn(table, caller, item, occurredAt);
  if (item === undefined || prospect === undefined) throw notFound("prospect");
  return { item, prospect };
}

/** Undefined if the caller does not see the prospect now, and did not see it at `occurredAt`. */
export async function visibleIn(
  table: Reads,
  caller: Caller,
  item: Item | undefined,
  occurredAt?: string,
): Promise<StoredProspect | undefined> {
  if (item === undefined) return undefined;
  const prospect = storedProspect(item);
  const wasVisible = occurredAt !== undefined && wasAssigned(caller, prospect, occurredAt);
  if (prospect.deletedAt !== undefined || !(isInScope(caller, prospect) || wasVisible)) return undefined;
  return (await isPublished(table, caller.companyId, prospect.importId)) ? prospect : undefined;
}

/** If the client has sent an ETag, the prospect's row is read first, because it alone shows whether the ETag is current. */
export async function readProspect<Current = never>(
  context: ReadContext,
  caller: Caller,
  id: number,
  validator: Validator<Current> = unconditional,
): Promise<ProspectDetail | Current> {
  const { companyId } = caller;
  const before = validator.isAsked ? await currentState(context, caller, id) : undefined;
  const notModified = before === undefined ? undefined : validator.check(before, context.clock.now());
  if (notModified !== undefined) return notModified;
  const [beginMs, learnedBefore] = [context.clock.now(), learned];
  const newest = { ...attachedKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  const [{ prospect, item }, notes, details, dictionary] = await Promise.all([
    readVisible(context, caller, id),
    Array.fromAsync(context.table.query(newest)),
    Array.fromAsync(context.table.query(attachedKeys.details(companyId, id))),
    currentDictionary(context, companyId),
  ]);
  const state = stateOf(item, dictionary);
  const isSettled =
    beginMs - lastChange(prospect, item) > SETTLED_MS && wasPublished(context.table, prospect, learnedBefore);
  const rows = {
    prospect,
    notes: notes.map((item) => StoredNote.parse(item)),
    appointments: ofType(details, "appointment").map((item) => StoredAppointment.parse(item)),
    history: ofType(details, "history").map((item) => StoredStatusChange.parse(item)),
  };
  const detail = presentDetail(rows, dictionary);
  const current = isSettled ? state : contentOf(detail);
  const sameContent = isSettled ? undefined : validator.check(current, context.clock.now());
  if (sameContent !== undefined) return sameContent;
  validator.tag(state === before ? state : current);
  return detail;
}

/**
 * The ETag of an answer whose rows may have been read partly before a write and partly after it. The service answers a request with this
 * ETag by 304 only after it has read all rows again.
 */
const contentOf = (detail: ProspectDetail): string => fingerprint("detail content", JSON.stringify(detail));

/**
 * After this time, a write has certainly ended. `readProspect` reads rows at slightly different times, so a note may be missing although
 * the prospect's row records it. An answer gets the ETag of the row's state only if the row was read before the other rows, or has not
 * changed for this time.
 */
const SETTLED_MS = 60_000;

async function currentState(context: ReadContext, caller: Caller, id: number): Promise<string> {
  const [{ item }, dictionary] = await Promise.all([
    readVisible(context, caller, id),
    currentDictionary(context, caller.companyId),
  ]);
  return stateOf(item, dictionary);
}

const NotesState = z.object({
  id: z.int(),
  companyId: z.int(),
  version: z.int(),
  notesVersion: z._default(z.int(), 0),
  /** The time of the last change of a note, in milliseconds since 1970. */
  notesChangedAt: z._default(z.int(), 0),
});

/** Each change of a note, an appointment or the history changes `version` or `notesVersion` of the prospect's row. */
function stateOf(item: Item, names: { readonly version: number }): string {
  const { companyId, id, version, notesVersion } = NotesState.parse(item);
  return fingerprint("detail", companyId, id, version, notesVersion, names.version);
}

const lastChange = ({ updatedAt, appointmentsChangedAt = 0 }: StoredProspect, item: Item): number =>
  Math.max(Date.parse(updatedAt), appointmentsChangedAt, NotesState.parse(item).notesChangedAt);

const ofType = (items: readonly Item[], wanted: string): Item[] => items.filter(({ type }) => type === wanted);
