/** Reads the appointments of a company in a range of time, as far as the caller sees their prospects. */
import { type Appointment, type CalendarQuery, StoredAppointment } from "#shared/appointments/schema.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { loadDictionary } from "#shared/companies/dictionary.ts";
import { keys } from "#shared/db/keys.ts";
import { ApiError } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";
import { presentAppointment, soonestFirst } from "#shared/prospects/present.ts";
import { StoredProspect } from "#shared/prospects/stored.ts";
import { isVisible } from "#shared/prospects/visibility.ts";
import type { World } from "#shared/world.ts";

const MS_PER_DAY = 86_400_000;
/** An appointment's times have years of four digits. */
const EARLIEST = Date.parse("0000-01-01T00:00:00.000Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");

/** Milliseconds since the epoch, both inclusive. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Soonest first. Both bounds hold for `startAt` and are inclusive. */
export async function listAppointments(world: World, caller: Caller, query: CalendarQuery): Promise<Appointment[]> {
  const range = rangeOf(query, world.clock.now());
  const [appointments, dictionary] = await Promise.all([
    readCalendar(world, caller.companyId, range),
    loadDictionary(world.table, caller.companyId),
  ]);
  const { assignedToUserId: wanted = [] } = query;
  const asked =
    wanted.length === 0
      ? appointments
      : appointments.filter((entry) => wanted.includes(entry.assignedToUserId ?? "unassigned"));
  const visible = await visibleProspects(world, caller, asked);
  return asked
    .filter(({ prospectId }) => visible.has(prospectId))
    .sort(soonestFirst)
    .map((entry) => presentAppointment(entry, dictionary));
}

function rangeOf(query: CalendarQuery, now: number): Range {
  const { from = now } = query;
  const { to = from + limits.calendarDays * MS_PER_DAY } = query;
  if (to - from > limits.calendarDaysMax * MS_PER_DAY) {
    const message = `must lie at most ${limits.calendarDaysMax} days after from`;
    throw new ApiError("validation_failed", "The range is too long.", {
      faults: [{ parameter: "to", code: "too_big", message }],
    });
  }
  return { from: Math.max(from, EARLIEST), to: Math.min(to, LATEST) };
}

/** One Query per month, at most 13 of them, all at once. */
async function readCalendar({ table }: World, companyId: number, range: Range): Promise<StoredAppointment[]> {
  if (range.from > range.to) return [];
  const found = await Promise.all(
    monthsOf(range).map(async (month) => {
      const entries: StoredAppointment[] = [];
      for await (const item of table.query(keys.calendar(companyId, month, iso(range.from), iso(range.to)))) {
        entries.push(StoredAppointment.parse({ ...item, type: "appointment" }));
      }
      return entries;
    }),
  );
  return found.flat();
}

/** `YYYY-MM` of each month that the range touches. */
function monthsOf({ from, to }: Range): string[] {
  const [first, last] = [monthNumber(from), monthNumber(to)];
  return Array.from({ length: last - first + 1 }, (_, i) => {
    const year = Math.floor((first + i) / 12);
    return `${String(year).padStart(4, "0")}-${String(((first + i) % 12) + 1).padStart(2, "0")}`;
  });
}

function monthNumber(epochMs: number): number {
  const date = new Date(epochMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** A deleted prospect's appointments stay in the calendar and are hidden here, for everybody. */
async function visibleProspects(
  { table }: World,
  caller: Caller,
  appointments: readonly StoredAppointment[],
): Promise<ReadonlySet<number>> {
  const ids = new Set(appointments.map(({ prospectId }) => prospectId));
  const items = await table.batchGet([...ids].map((id) => keys.prospect(caller.companyId, id)));
  const prospects = items.map((item) => StoredProspect.parse(item));
  return new Set(prospects.filter((prospect) => isVisible(caller, prospect)).map(({ id }) => id));
}
