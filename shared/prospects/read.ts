/**
 * Reads single prospects. Also decides which prospects a caller may see, for every read and write of a prospect and its notes and
 * appointments.
 */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { ReadContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { all, type Condition, equals, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { notFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import type { ProspectDetail } from "#shared/prospects/detail.ts";
import { presentDetail } from "#shared/prospects/present.ts";
import {
  StoredAppointment,
  StoredNote,
  type StoredProspect,
  StoredStatusChange,
  storedProspect,
} from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/**
 * Whether the caller may see prospects with this assignee. The company is not checked, because every key contains the company of the
 * caller.
 */
export function isInScope(caller: Caller, { assignedToUserId }: Pick<StoredProspect, "assignedToUserId">): boolean {
  const assignee = visibleAssignee(caller);
  return assignee === undefined || assignedToUserId === assignee;
}

export const isVisible = (caller: Caller, prospect: Pick<StoredProspect, "deletedAt" | "assignedToUserId">): boolean =>
  prospect.deletedAt === undefined && isInScope(caller, prospect);

/** `isVisible` as a DynamoDB condition on the prospect's row. */
function visibleCondition(caller: Caller): Condition {
  const assignee = visibleAssignee(caller);
  const own = assignee === undefined ? [] : [equals("assignedToUserId", assignee)];
  return all(present, missing("deletedAt"), ...own);
}

/**
 * Makes a transaction fail unless the caller may see the prospect. `importId` is the prospect's import, if that import is known to be
 * completed.
 *
 * The update removes an attribute that never exists, so it changes nothing and emits no stream record. It replaces a ConditionCheck,
 * because the local database dynoxide 1.2.1 rejects one that compares values.
 */
export const requireVisible = (caller: Caller, prospectId: number, importId?: string | undefined): Write => ({
  update: keys.prospect(caller.companyId, prospectId),
  change: { remove: ["nothing"] },
  when: all(visibleCondition(caller), importId === undefined ? missing("importId") : equals("importId", importId)),
});

/** Imports that are known to be completed. The result can be cached, because a completed import stays completed. */
const known = new WeakMap<Reads, Set<string>>();
const REMEMBERED = 10_000;

const State = z.object({ state: z.string() });

/**
 * Whether rows with this import id are visible. A numeric id names an import, whose rows are visible after it is completed. Rows with any
 * other id are always visible. A missing import row counts as completed.
 */
export async function isPublished(table: Reads, companyId: number, importId: string | undefined): Promise<boolean> {
  if (importId === undefined || !/^\d+$/.test(importId)) return true;
  const completed = known.get(table) ?? new Set<string>();
  known.set(table, completed);
  const name = `${companyId}#${importId}`;
  if (completed.has(name)) return true;
  const item = await table.get(keys.import(companyId, Number(importId)));
  if (item !== undefined && State.parse(item).state !== "completed") return false;
  if (completed.size >= REMEMBERED) completed.clear();
  completed.add(name);
  return true;
}

/** Throws `not_found` if the caller may not see the prospect. */
export async function readVisibleProspect({ table }: ReadContext, caller: Caller, id: number): Promise<StoredProspect> {
  const item = await table.get(keys.prospect(caller.companyId, id));
  const prospect = item === undefined ? undefined : storedProspect(item);
  if (prospect === undefined || !isVisible(caller, prospect)) throw notFound("prospect");
  if (!(await isPublished(table, caller.companyId, prospect.importId))) throw notFound("prospect");
  return prospect;
}

/**
 * Returns a prospect with notes, appointments and status history, in one round trip. Throws `not_found` if the caller may not see the
 * prospect.
 */
export async function readProspect(context: ReadContext, caller: Caller, id: number): Promise<ProspectDetail> {
  const { companyId } = caller;
  const newest = { ...attachedKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  const [prospect, notes, details, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, id),
    itemsOf(context.table.query(newest)),
    itemsOf(context.table.query(attachedKeys.details(companyId, id))),
    currentDictionary(context, companyId),
  ]);
  const rows = {
    prospect,
    notes: notes.map((item) => StoredNote.parse(item)),
    appointments: ofType(details, "appointment").map((item) => StoredAppointment.parse(item)),
    history: ofType(details, "history").map((item) => StoredStatusChange.parse(item)),
  };
  return presentDetail(rows, dictionary);
}

async function itemsOf(query: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of query) items.push(item);
  return items;
}

const ofType = (items: readonly Item[], wanted: string): Item[] => items.filter(({ type }) => type === wanted);
