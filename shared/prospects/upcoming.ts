/** The upcoming appointments of a prospect that its row keeps, so that a page of prospects needs no look at appointments. */
import { StoredAppointment } from "#shared/appointments/schema.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { soonestFirst } from "#shared/prospects/present.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

/** Enough for the appointments that pass before another one is written. */
const KEPT = 3;
/** Together: a page pays for what the rows hold, and an appointment may have 10 000 characters of notes. */
const KEPT_BYTES = 2_000;

type UpcomingFields = Pick<StoredProspect, "upcoming" | "hasMoreUpcoming">;

export const nothingUpcoming: UpcomingFields = { upcoming: [], hasMoreUpcoming: false };

/** What the row keeps of all the prospect's appointments: the soonest that fit, without a gap. */
export function upcomingFields(appointments: readonly StoredAppointment[], nowMs: number): UpcomingFields {
  const all = appointments.filter((appointment) => isUpcoming(appointment, nowMs)).sort(soonestFirst);
  const upcoming: StoredAppointment[] = [];
  let bytes = 0;
  for (const appointment of all.slice(0, KEPT)) {
    bytes += Buffer.byteLength(JSON.stringify(appointment));
    if (bytes > KEPT_BYTES) break;
    upcoming.push(appointment);
  }
  return { upcoming, hasMoreUpcoming: upcoming.length < all.length };
}

/** The soonest that is still to come. Asks the table only where the row keeps none that is and has not room for all. */
export async function upcomingOf(
  table: Table,
  { companyId, id, upcoming, hasMoreUpcoming }: StoredProspect,
  nowMs: number,
): Promise<StoredAppointment | undefined> {
  const kept = upcoming.find((appointment) => isUpcoming(appointment, nowMs));
  if (kept !== undefined || !hasMoreUpcoming) return kept;
  const found: StoredAppointment[] = [];
  for await (const item of table.query(keys.appointments(companyId, id))) {
    const appointment = StoredAppointment.parse(item);
    if (isUpcoming(appointment, nowMs)) found.push(appointment);
  }
  return found.sort(soonestFirst)[0];
}

const isUpcoming = ({ status, startAt, deletedAt }: StoredAppointment, nowMs: number): boolean =>
  deletedAt === undefined && status === "scheduled" && Date.parse(startAt) >= nowMs;
