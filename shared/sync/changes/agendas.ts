/** Reads the agendas of a company's prospects. */
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
 * Reads the agendas of the user's prospects, or of those without an assignee if `userId` is null. An agenda that ends before the time
 * `from` may be left out.
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

export interface Agendas {
  readonly count: number;
  /** The months in which these appointments begin, in order. */
  readonly months: readonly (readonly [month: number, count: number])[];
}

/**
 * `userIds` must contain all users of the company, because an agenda is stored under the prospect's assignee. If the assignee changes
 * during the reads, the appointments are read from their own rows. The changes after `headVersion`, the version of the head row before this
 * call, show such prospects.
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

/** The agenda of a reassigned prospect has moved to another partition, so Queries of all partitions may have missed it. */
async function reassignedSince(table: Reads, companyId: number, headVersion: number): Promise<Set<number>> {
  const { chunks, unflushed } = await readLog(table, companyId, headVersion, 1);
  const changes = [...unflushed.changes];
  for await (const chunk of chunks) changes.push(...chunk.changes);
  const isReassigned = (change: Change): boolean =>
    change.kind === "prospect" && change.version > 1 && change.before !== change.after;
  return new Set(changes.filter(isReassigned).map(({ id }) => id));
}

/** The number is counted from January of the year 0, in UTC. */
export function monthOf(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
