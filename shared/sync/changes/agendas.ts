/** Reads the agendas of a company's prospects. An agenda is a row with the times of one prospect's appointments. */
import type { Change } from "#shared/company-index/change-log.ts";
import { readLog } from "#shared/company-index/read/chunks.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Reads } from "#shared/db/reads.ts";
import { type AgendaEntry, agendaOf } from "#shared/prospects/agenda.ts";
import { StoredAppointment } from "#shared/prospects/stored.ts";

interface PlacedEntry extends AgendaEntry {
  readonly prospectId: number;
}

/**
 * Reads the entries of all agendas (rows with the times of one prospect's appointments) of the prospects that are assigned to the user, or
 * to nobody if `userId` is null. An agenda whose last appointment starts before the time `from` may be left out.
 */
export async function agendaEntries(
  table: Reads,
  companyId: number,
  userId: number | null,
  from = "0",
): Promise<PlacedEntry[]> {
  const found = new Map<number, PlacedEntry>();
  for await (const item of table.query(attachedKeys.agendas(companyId, userId, from))) {
    const { prospectId, entries } = agendaOf(item);
    for (const entry of entries) found.set(entry.id, { ...entry, prospectId });
  }
  return [...found.values()];
}

/** Maximum number of Queries that run at the same time. */
export const QUERIES_AT_ONCE = 25;

/** The appointments of all prospects that are not deleted. */
export interface Agendas {
  readonly count: number;
  /** The months in which these appointments begin, in order, with the number of appointments of each month. */
  readonly months: readonly (readonly [month: number, count: number])[];
}

/**
 * Reads the agendas of all prospects. `userIds` must contain all users of the company, because an agenda is stored under the prospect's
 * assignee. If a prospect gets another assignee during the reads, its agenda moves, and the reads may miss it. The appointments of such a
 * prospect are therefore read from their own rows. `headVersion` is the version of the search index's head row before this call. The
 * changes after this version show which prospects may have got another assignee.
 */
export async function allAgendas(
  table: Reads,
  companyId: number,
  userIds: readonly number[],
  headVersion: number,
): Promise<Agendas> {
  const assignees = [null, ...userIds];
  const inMonths = new Map<number, number>();
  const seen = new Set<number>();
  for (let done = 0; done < assignees.length; done += QUERIES_AT_ONCE) {
    const some = assignees.slice(done, done + QUERIES_AT_ONCE);
    for (const entries of await Promise.all(some.map((id) => agendaEntries(table, companyId, id)))) {
      for (const { id, startMs, prospectId } of entries) {
        inMonths.set(id, monthOf(startMs));
        seen.add(prospectId);
      }
    }
  }
  for (const prospectId of await reassignedSince(table, companyId, headVersion)) {
    if (seen.has(prospectId)) continue;
    for await (const item of table.query(attachedKeys.appointments(companyId, prospectId))) {
      const { id, startAt } = StoredAppointment.parse(item);
      inMonths.set(id, monthOf(Date.parse(startAt)));
    }
  }
  const months = Map.groupBy(inMonths.values(), (month) => month);
  return {
    count: inMonths.size,
    months: [...months].map(([month, own]) => [month, own.length] as const).sort(([a], [b]) => a - b),
  };
}

/**
 * Returns the prospects that may have got another assignee since the head row of the search index had this version. The agenda of such a
 * prospect has moved to another partition, so Queries of all partitions may have missed it.
 */
async function reassignedSince(table: Reads, companyId: number, headVersion: number): Promise<Set<number>> {
  const { chunks, unflushed } = await readLog(table, companyId, headVersion, 1);
  const changes = [...unflushed.changes];
  for await (const chunk of chunks) changes.push(...chunk.changes);
  const isReassigned = (change: Change): boolean =>
    change.kind === "prospect" && change.version > 1 && change.before !== change.after;
  return new Set(changes.filter(isReassigned).map(({ id }) => id));
}

/** Returns the number of the month in UTC, counted from January of the year 0. */
export function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
