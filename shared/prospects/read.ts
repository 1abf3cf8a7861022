/** Reads single prospects, and holds the visibility rule for every read and write of a prospect and its attached rows. */
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import { all, type Condition, equals, missing, present } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { presentDetail } from "#shared/prospects/present.ts";
import type { ProspectDetail } from "#shared/prospects/schema.ts";
import { StoredAppointment, StoredNote, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";

/** Whether the caller may see prospects with this assignee. Rows of another company are never read. */
export function isInScope(caller: Caller, { assignedToUserId }: Pick<StoredProspect, "assignedToUserId">): boolean {
  const assignee = visibleAssignee(caller);
  return assignee === undefined || assignedToUserId === assignee;
}

export const isVisible = (caller: Caller, prospect: Pick<StoredProspect, "deletedAt" | "assignedToUserId">): boolean =>
  prospect.deletedAt === undefined && isInScope(caller, prospect);

/** Holds for a prospect's row as long as `isVisible` does. */
export function visibleCondition(caller: Caller): Condition {
  const assignee = visibleAssignee(caller);
  const own = assignee === undefined ? [] : [equals("assignedToUserId", assignee)];
  return all(present, missing("deletedAt"), ...own);
}

/**
 * The transaction goes through only while the caller sees the prospect. An update that takes away what is not there
 * changes nothing, leaves no stream record and costs what a ConditionCheck costs; dynoxide 1.2.1 refuses a ConditionCheck
 * that compares with a value. `importId` names the import that it came with, once that is known to be completed.
 */
export const requireVisible = (caller: Caller, prospectId: number, importId?: string | undefined): Write => ({
  update: keys.prospect(caller.companyId, prospectId),
  change: { remove: ["nothing"] },
  when: all(visibleCondition(caller), importId === undefined ? missing("importId") : equals("importId", importId)),
});

/** A completed import stays so: what is known of one is known for good. */
const known = new WeakMap<Table, Set<string>>();
const REMEMBERED = 10_000;

const State = z.object({ state: z.string() });

/** One look at the table for each import that this function has not heard of. Rows of no import, and of the demo, are always seen. */
export async function isPublished(table: Table, companyId: number, importId: string | undefined): Promise<boolean> {
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

/** The prospect's row alone. Throws not_found for what the caller may not see. */
export async function readVisibleProspect({ table }: ApiContext, caller: Caller, id: number): Promise<StoredProspect> {
  const item = await table.get(keys.prospect(caller.companyId, id));
  const prospect = item === undefined ? undefined : StoredProspect.parse(item);
  if (prospect === undefined || !isVisible(caller, prospect)) throw notFound("prospect");
  if (!(await isPublished(table, caller.companyId, prospect.importId))) throw notFound("prospect");
  return prospect;
}

/** One round: the row, its newest notes, and its appointments and past statuses. Throws not_found for what the caller may not see. */
export async function readProspect(context: ApiContext, caller: Caller, id: number): Promise<ProspectDetail> {
  const { companyId } = caller;
  const newest = { ...besideKeys.notes(companyId, id), newestFirst: true, limit: limits.notesInDetail };
  const [prospect, notes, details, dictionary] = await Promise.all([
    readVisibleProspect(context, caller, id),
    itemsOf(context.table.query(newest)),
    itemsOf(context.table.query(besideKeys.details(companyId, id))),
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
