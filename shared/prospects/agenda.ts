/**
 * The agenda of a prospect: when its appointments are, in one row that stands with the agendas of its assignee's other prospects. A user
 * who sees only own prospects finds appointments by it, and a list the next one of a prospect that has many.
 *
 * The row changes in the transactions of the prospect's row, under its version: it is never apart from the assignee or the appointments.
 * The instant in its key only grows, so that a read in the order of keys which meets a moving agenda sees it before or after.
 */
import * as z from "zod/mini";
import { ByteReader, ByteWriter } from "#shared/company-index/bytes.ts";
import { besideKeys } from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/item.ts";
import type { Table } from "#shared/db/table.ts";
import type { StoredAppointment } from "#shared/prospects/appointment-schema.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

export interface AgendaEntry {
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  /** Neither completed nor cancelled. */
  readonly isScheduled: boolean;
}

export interface Agenda {
  readonly prospectId: number;
  readonly entries: readonly AgendaEntry[];
}

const Stored = z.object({ prospectId: Id, bytes: z.instanceof(Uint8Array) });

export const soonestEntryFirst = (a: AgendaEntry, b: AgendaEntry): number => a.startMs - b.startMs || a.id - b.id;

export function agendaOf(item: Item): Agenda {
  const { prospectId, bytes } = Stored.parse(item);
  const from = new ByteReader(bytes);
  const entries: AgendaEntry[] = [];
  while (!from.done) {
    entries.push({ id: from.integer(), startMs: from.signed(), isScheduled: from.integer() === 1 });
  }
  return { prospectId, entries };
}

/** Some ten bytes for each. */
function encoded(entries: readonly AgendaEntry[]): Uint8Array {
  const into = new ByteWriter();
  for (const { id, startMs, isScheduled } of entries) {
    into.integer(id);
    into.signed(startMs);
    into.integer(isScheduled ? 1 : 0);
  }
  return into.finish();
}

type Owner = Pick<StoredProspect, "companyId" | "id" | "assignedToUserId" | "agendaUntil">;

/** `undefined`: it has moved since the prospect's row was read. */
export async function readAgenda(table: Table, prospect: Owner): Promise<readonly AgendaEntry[] | undefined> {
  const { companyId, id, assignedToUserId, agendaUntil } = prospect;
  if (agendaUntil === undefined) return [];
  const item = await table.get(besideKeys.agenda(companyId, assignedToUserId, agendaUntil, id));
  return item === undefined ? undefined : agendaOf(item).entries;
}

/** With the appointment as it is after a change, or without it where it is deleted. */
export function agendaAfter(
  entries: readonly AgendaEntry[],
  id: number,
  after: Pick<StoredAppointment, "startAt" | "status"> | undefined,
): AgendaEntry[] {
  const others = entries.filter((entry) => entry.id !== id);
  if (after === undefined) return others;
  return [...others, { id, startMs: Date.parse(after.startAt), isScheduled: after.status === "scheduled" }];
}

/** Not before what the agenda was said to end with. Undefined where it is empty: then there is no agenda. */
export function agendaUntil(entries: readonly AgendaEntry[], before: string | undefined): string | undefined {
  if (entries.length === 0) return undefined;
  const last = entries.reduce((latest, { startMs }) => Math.max(latest, startMs), Number.NEGATIVE_INFINITY);
  const until = new Date(last).toISOString();
  return before !== undefined && before > until ? before : until;
}

/** Goes with the write of the prospect's row that makes `next` of `current`. */
export function agendaWrites(current: Owner, next: Owner, entries: readonly AgendaEntry[]): Write[] {
  const { companyId, id: prospectId, assignedToUserId, agendaUntil: until } = next;
  if (until === undefined) return agendaRemoval(current);
  const key = besideKeys.agenda(companyId, assignedToUserId, until, prospectId);
  const put: Write = { put: { ...key, type: "agenda", prospectId, bytes: encoded(entries) } };
  const hasMoved = current.assignedToUserId !== assignedToUserId || current.agendaUntil !== until;
  return hasMoved ? [put, ...agendaRemoval(current)] : [put];
}

/** A deleted prospect has none. */
export function agendaRemoval({ companyId, id, assignedToUserId, agendaUntil: until }: Owner): Write[] {
  return until === undefined ? [] : [{ remove: besideKeys.agenda(companyId, assignedToUserId, until, id) }];
}

/** Nothing but where the prospect has appointments and gets another assignee. */
export async function agendaMoves(table: Table, current: StoredProspect, next: StoredProspect): Promise<Write[]> {
  if (current.agendaUntil === undefined || current.assignedToUserId === next.assignedToUserId) return [];
  const entries = await readAgenda(table, current);
  // The row's own condition fails: somebody else has written it meanwhile.
  return entries === undefined ? [] : agendaWrites(current, next, entries);
}
