/** Finds the records that change without a write: a prospect when an appointment begins, and a user when an invitation expires. */
import { visibleAssignee } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { rowsAtLeast } from "#shared/prospects/list/page-rows.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { agendaEntries } from "#shared/sync/changes/agendas.ts";
import { calendarRows, monthEnd } from "#shared/sync/changes/appointments.ts";
import type { Elapsed } from "#shared/sync/changes/cursor.ts";
import { begunAt, expiresAt, type Making, type PageItems, prospectItem, userItem } from "#shared/sync/changes/items.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";

type Place = Pick<Elapsed, "at" | "id">;

/** `id` is the id of the appointment or of the user. */
interface Event extends Place {
  /** The prospect that has the appointment. Undefined for a user. */
  readonly prospectId?: number;
}

interface Events {
  /** The events that have already happened, sorted by `at` and then by `id`. */
  readonly due: readonly Event[];
  /** Events after this place may be missing from `due`. */
  readonly end: Place;
  /** The next event after those in `due` does not happen before this time, in milliseconds since 1970. */
  readonly quietUntil: number;
}

/** Milliseconds for which the calendar is read in advance. Requests before `quietUntil` need not read it. */
const AHEAD_MS = 3_600_000;

export interface AddedEvents {
  readonly elapsed: Elapsed;
  readonly hasMore: boolean;
}

/** Adds an item for each record that has changed without a write since `from`. */
export async function addElapsed(
  making: Making,
  types: readonly ChangeType[],
  from: Elapsed,
  names: Dictionary,
  page: PageItems,
): Promise<AddedEvents> {
  const { context, caller, nowMs } = making;
  const users = types.includes("users") ? expiring(from, nowMs, names) : quiet(nowMs);
  const appointments = types.includes("prospects") ? await beginning(making, from, page.room) : quiet(nowMs);
  const end = isAfter(users.end, appointments.end) ? appointments.end : users.end;
  const due = [...users.due, ...appointments.due].filter((event) => !isAfter(event, end)).sort(inOrder);
  const ids = new Set(due.flatMap(({ prospectId }) => prospectId ?? []));
  const rows = await rowsAtLeast(context.table, caller.companyId, [], names.version, ids);
  let last: Elapsed = from;
  for (const { at, id, prospectId } of due) {
    const row = prospectId === undefined ? undefined : rows.get(prospectId);
    const user = prospectId === undefined ? names.users.get(id) : undefined;
    const made = row === undefined ? undefined : await prospectItem(making, row, names);
    const item = user !== undefined ? userItem(user, nowMs) : made?.item.op === "upsert" ? made : undefined;
    if (item !== undefined && (page.room <= 0 || !page.add(item))) return { elapsed: last, hasMore: true };
    last = { at, id, quietUntil: 0 };
  }
  const isEnd = end.at > nowMs;
  const quietUntil = isEnd ? Math.min(users.quietUntil, appointments.quietUntil, page.quietUntil) : 0;
  return { elapsed: { ...end, quietUntil }, hasMore: !isEnd };
}

const quiet = (nowMs: number): Events => ({
  due: [],
  end: { at: nowMs + 1, id: 0 },
  quietUntil: Number.POSITIVE_INFINITY,
});

const inOrder = (a: Place, b: Place): number => a.at - b.at || a.id - b.id;
const isAfter = (a: Place, b: Place): boolean => inOrder(a, b) > 0;

function eventsOf(all: readonly Event[], from: Elapsed, nowMs: number): Events {
  const later = all.filter(({ at }) => at > nowMs).map(({ at }) => at);
  const due = all.filter((event) => event.at <= nowMs && isAfter(event, from));
  return {
    due,
    end: { at: nowMs + 1, id: 0 },
    quietUntil: later.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
  };
}

function expiring(from: Elapsed, nowMs: number, { users }: Dictionary): Events {
  const all = [...users.values()].flatMap((user) => {
    const at = expiresAt(user);
    return at === undefined ? [] : [{ at, id: user.id }];
  });
  return eventsOf(all, from, nowMs);
}

async function beginning({ context, caller, nowMs }: Making, from: Elapsed, limit: number): Promise<Events> {
  const { table } = context;
  const { companyId } = caller;
  const own = visibleAssignee(caller);
  if (own !== undefined) {
    const entries = await agendaEntries(table, companyId, own, iso(from.at - 1));
    const all = entries.flatMap(({ id, prospectId, startMs, isScheduled }) =>
      isScheduled ? [{ at: startMs + 1, id, prospectId }] : [],
    );
    return eventsOf(all, from, nowMs);
  }
  // Each month of the calendar is a separate partition.
  const end = Math.min(nowMs + AHEAD_MS, monthEnd(from.at - 1));
  const all: Event[] = [];
  let rows = 0;
  let last: Place | undefined;
  for await (const row of calendarRows(table, companyId, { at: from.at - 1, id: from.id }, end, limit)) {
    rows++;
    last = { at: begunAt(row), id: row.id };
    if (row.status === "scheduled") all.push({ ...last, prospectId: row.prospectId });
  }
  const events = eventsOf(all, from, nowMs);
  if (rows === limit && last !== undefined) {
    return last.at <= nowMs
      ? { ...events, end: last, quietUntil: 0 }
      : { ...events, quietUntil: Math.min(events.quietUntil, last.at) };
  }
  const found = { ...events, quietUntil: Math.min(events.quietUntil, end + 1) };
  return end > nowMs ? found : { ...found, end: { at: end + 1, id: 0 } };
}
