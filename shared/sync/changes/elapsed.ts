/** Finds the records that change without a write: a prospect when an appointment begins, and a user when an invitation expires. */
import { visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { agendaEntries } from "#shared/prospects/agenda.ts";
import { calendarRows, monthEnd } from "#shared/prospects/calendar.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import type { Elapsed } from "#shared/sync/changes/cursor.ts";
import {
  begunAt,
  expiresAt,
  type Making,
  type PageItems,
  sharedItem,
  shownProspect,
} from "#shared/sync/changes/items.ts";

type Place = Pick<Elapsed, "at" | "id">;

/** The begin of the appointment with this id, or the expiry of the invitation of the user with this id. */
interface Event extends Place {
  /** The prospect that has the appointment. Undefined for a user. */
  readonly prospectId?: number;
}

interface Begun {
  readonly events: readonly Event[];
  /** `events` may lack the events after this place. */
  readonly until: Place;
}

const forEver: Place = { at: Number.POSITIVE_INFINITY, id: 0 };

/** The calendar is read this far beyond the present time, so that later requests need not read it until `quietUntil`. */
const AHEAD_MS = 3_600_000;

/** Adds an item for each record that has changed after `from` without a write. */
export async function addElapsed(
  making: Making,
  from: Elapsed,
  names: Dictionary,
  page: PageItems,
): Promise<{ readonly elapsed: Elapsed; readonly hasMore: boolean }> {
  const { context, caller, types, nowMs } = making;
  const nothing: Begun = { events: [], until: forEver };
  const { events, until } = types.includes("prospects") ? await beginning(making, from, page.room) : nothing;
  const all = [...events, ...(types.includes("users") ? expiring(names) : [])];
  const due = all
    .filter((event) => event.at <= nowMs && isAfter(event, from) && !isAfter(event, until))
    .sort((a, b) => a.at - b.at || a.id - b.id);
  const ids = new Set(due.flatMap(({ prospectId }) => prospectId ?? []));
  const rows = await rowsAtLeast(context.table, caller.companyId, names.version, { current: ids });
  let last: Elapsed = from;
  for (const { at, id, prospectId } of due) {
    const user = prospectId === undefined ? names.users.get(id) : undefined;
    const row = prospectId === undefined ? undefined : rows.get(prospectId);
    const item = user === undefined ? await shownProspect(making, row, names) : sharedItem(user, nowMs);
    if (item !== undefined && (page.room <= 0 || !page.add(item))) return { elapsed: last, hasMore: true };
    last = { at, id, quietUntil: 0 };
  }
  if (until.at <= nowMs) return { elapsed: { ...until, quietUntil: 0 }, hasMore: true };
  const next = all.reduce((first, { at }) => (at > nowMs ? Math.min(first, at) : first), until.at);
  return { elapsed: { at: nowMs + 1, id: 0, quietUntil: Math.min(next, page.quietUntil) }, hasMore: false };
}

const isAfter = (a: Place, b: Place): boolean => a.at > b.at || (a.at === b.at && a.id > b.id);

const expiring = ({ users }: Dictionary): Event[] =>
  [...users.values()].flatMap((user) => {
    const at = expiresAt(user);
    return at === undefined ? [] : [{ at, id: user.id }];
  });

async function beginning({ context, caller, nowMs }: Making, from: Elapsed, limit: number): Promise<Begun> {
  const { table } = context;
  const { companyId } = caller;
  const own = visibleAssignee(caller);
  if (own !== undefined) {
    const entries = await agendaEntries(table, companyId, own, iso(from.at - 1));
    const events = entries.flatMap(({ id, prospectId, startMs, isScheduled }) =>
      isScheduled ? [{ at: startMs + 1, id, prospectId }] : [],
    );
    return { events, until: forEver };
  }
  // A read ends with the month, because each month of the calendar is a separate partition.
  const end = Math.min(nowMs + AHEAD_MS, monthEnd(from.at - 1));
  const events: Event[] = [];
  let left = limit;
  let last = { at: end + 1, id: 0 };
  for await (const row of calendarRows(table, companyId, { at: from.at - 1, id: from.id }, end, limit)) {
    const place = { at: begunAt(row), id: row.id };
    if (--left === 0) last = place;
    if (row.status === "scheduled") events.push({ ...place, prospectId: row.prospectId });
  }
  return { events, until: last };
}
