/** Builds the table rows of invented prospects with addresses, notes and appointments. */
import { iso } from "#shared/clock.ts";
import type { Fact } from "#shared/company-index/facts.ts";
import type { RowWithNotes } from "#shared/company-index/segment.ts";
import type { ApiContext } from "#shared/context.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { addressFrom } from "#shared/prospects/address-input.ts";
import { newAddressWrite } from "#shared/prospects/addresses.ts";
import { type AgendaEntry, agendaAfter, agendaUntil, agendaWrites, upcomingFields } from "#shared/prospects/agenda.ts";
import { newAppointmentWrites } from "#shared/prospects/appointments.ts";
import { indexNote, indexRow } from "#shared/prospects/indexed.ts";
import { noteLocatorWrite } from "#shared/prospects/rows.ts";
import type { StoredAppointment, StoredNote } from "#shared/prospects/stored.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import type { StoredStatus } from "#shared/reference/schema.ts";
import { type City, houseIn } from "./cities.ts";
import { firstNames, lastNames, noteTexts, statusShares } from "./people.ts";
import { pick, type SyntheticCompany, syntheticNote, syntheticProspect } from "./synthetic-prospect.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The number of days before today on which the reps have worked. */
const WORKED_DAYS = 6;
/** The first working hour in UTC, and the number of working hours. In Denver and Phoenix, this is the daytime of the same date. */
const [FIRST_HOUR, HOURS] = [15, 8];
/** The import id of all demo rows. A row with an import id causes no webhook event. */
const IMPORT_ID = "demo";

export interface DemoCompany extends SyntheticCompany {
  readonly city: City;
}

type Row = Key & Item;

export interface DemoRows {
  readonly rows: readonly Row[];
  readonly indexed: readonly RowWithNotes[];
  readonly facts: readonly Fact[];
}

/** Builds the rows of prospects, dated relative to today. On the same day, equal random sequences give equal rows, except for ids. */
export async function demoRows(
  context: ApiContext,
  company: DemoCompany,
  prospectIds: readonly number[],
  random: () => number,
): Promise<DemoRows> {
  const rows: Row[] = [];
  const indexed: RowWithNotes[] = [];
  const facts: Fact[] = [];
  for (const [index, id] of prospectIds.entries()) {
    const prospect = await demoProspect(context, company, id, index, random);
    if (prospect.address !== null) {
      rows.push(...putsOf([newAddressWrite(company.id, prospect.address, prospect.createdAt, id)]));
    }
    const notes = random() < 0.35 ? [await demoNote(context, company, prospect, random)] : [];
    rows.push(...notes.flatMap(noteRows));
    const appointments = random() < 0.08 ? [await demoAppointment(context, company, prospect, random)] : [];
    rows.push(...appointments.flatMap((appointment) => putsOf(newAppointmentWrites(appointment))));
    facts.push(...factsOf(prospect, notes, appointments));
    const agenda = appointments.reduce((entries: AgendaEntry[], one) => agendaAfter(entries, one.id, one), []);
    const until = agendaUntil(agenda, undefined);
    const upcoming = upcomingFields(appointments, context.clock.now());
    const ofAgenda = until !== undefined && { agendaUntil: until, appointments: agenda.length };
    const whole = { ...prospect, ...upcoming, ...ofAgenda };
    indexed.push({ row: indexRow(whole), notes: notes.map(indexNote) });
    rows.push({ ...keys.prospect(company.id, id), ...prospectItem(whole) });
    rows.push(...putsOf(agendaWrites(prospect, whole, agenda)));
  }
  return { rows, indexed, facts };
}

function factsOf(
  { id: prospectId, createdBy, createdAt, statusId, lastStatusChange: change }: StoredProspect,
  notes: readonly StoredNote[],
  appointments: readonly StoredAppointment[],
): Fact[] {
  const factOf = (kind: Fact["kind"], by: number | null, at: string, status: number | null, record: number): Fact[] =>
    by === null ? [] : [{ kind, prospectId, userId: by, at: Date.parse(at), statusId: status, record }];
  return [
    ...factOf("creation", createdBy, createdAt, change?.version === 1 ? statusId : null, 1),
    ...(change === null ? [] : factOf("statusChange", change.changedBy, change.createdAt, statusId, change.version)),
    ...notes.flatMap((note) => factOf("note", note.createdBy, note.createdAt, null, note.id)),
    ...appointments.flatMap((one) => factOf("appointment", one.createdBy, one.createdAt, null, one.id)),
  ];
}

const todayOf = (context: ApiContext): number => Math.floor(context.clock.now() / DAY_MS) * DAY_MS;

async function demoProspect(
  context: ApiContext,
  company: DemoCompany,
  id: number,
  index: number,
  random: () => number,
): Promise<StoredProspect> {
  const { city } = company;
  const first = pick(firstNames, random);
  const last = pick(lastNames, random);
  const today = todayOf(context);
  const createdAt = iso(today - index * 4 * HOUR_MS - Math.floor(random() * HOUR_MS));
  const { lat, lng, ...house } = houseIn(city, random);
  const status = statusFor(company, random() * 100);
  const assignedToUserId = random() < 0.7 ? pick(company.repIds, random) : null;
  const prospect = syntheticProspect(company, {
    id,
    name: `${first} ${last}`,
    phoneNumber: `(${300 + Math.floor(random() * 600)}) 555-${String(Math.floor(random() * 10_000)).padStart(4, "0")}`,
    secondaryPhoneNumber: null,
    emailAddress: random() < 0.6 ? `${first}.${last.replace("'", "")}${index}@example.com`.toLowerCase() : null,
    lat,
    lng,
    address: addressFrom(await context.ids.nextAddress(company.id), {
      ...house,
      address2: random() < 0.1 ? `Apt ${1 + Math.floor(random() * 30)}` : null,
      state: city.state,
    }),
    status,
    changeId: status === undefined ? 0 : await context.ids.next(),
    assignedToUserId,
    tagIds: company.tagIds.filter(() => random() < 0.15),
    source: "demo",
    createdAt,
    importId: IMPORT_ID,
  });
  const day = 1 + Math.floor(random() * WORKED_DAYS);
  const at = iso(today - day * DAY_MS + Math.floor((FIRST_HOUR + random() * HOURS) * HOUR_MS));
  return status === undefined || status.value === UNTOUCHED || createdAt > at ? prospect : visited(prospect, at);
}

/** The status of prospects at which nobody has been. */
const UNTOUCHED = "New";

/** Returns the prospect after its rep has set the status at the door at the time `at`, or unchanged without a rep or a status change. */
function visited(prospect: StoredProspect, at: string): StoredProspect {
  const { assignedToUserId: rep, lastStatusChange: change } = prospect;
  if (rep === null || change === null) return prospect;
  const lastStatusChange = { ...change, changedBy: rep, createdAt: at, version: 2 };
  return { ...prospect, lastStatusChange, updatedAt: at, updatedBy: rep, version: 2 };
}

/** Returns the status whose range contains `place`, a random number from 0 to 100. The range of each status is as wide as its share. */
function statusFor({ statuses }: DemoCompany, place: number): StoredStatus | undefined {
  let end = 0;
  return statuses.find(({ value }) => {
    end += statusShares[value] ?? 0;
    return place < end;
  });
}

const putsOf = (writes: readonly Write[]): Row[] => writes.flatMap((write) => ("put" in write ? [write.put] : []));

async function demoNote(
  context: ApiContext,
  company: DemoCompany,
  prospect: StoredProspect,
  random: () => number,
): Promise<StoredNote> {
  return syntheticNote(prospect, {
    createdAt: prospect.updatedAt,
    id: await context.ids.next(),
    body: pick(noteTexts, random),
    createdBy: prospect.assignedToUserId ?? company.ownerId,
  });
}

const noteRows = (note: StoredNote): Row[] => [
  { ...attachedKeys.note(note.companyId, note.prospectId, note.createdAt, note.id), ...note },
  ...putsOf([noteLocatorWrite(note)]),
];

/** Builds an appointment. One in three appointments is in the 20 days before today, and the others are today or in the 13 days after. */
async function demoAppointment(
  context: ApiContext,
  company: DemoCompany,
  prospect: StoredProspect,
  random: () => number,
): Promise<StoredAppointment> {
  const isPast = random() < 0.33;
  const day = isPast ? -1 - Math.floor(random() * 20) : Math.floor(random() * 14);
  const start = todayOf(context) + day * DAY_MS + (FIRST_HOUR + Math.floor(random() * HOURS)) * HOUR_MS;
  return {
    type: "appointment",
    id: await context.ids.next(),
    companyId: company.id,
    prospectId: prospect.id,
    title: "Inspection",
    startAt: iso(start),
    endAt: iso(start + HOUR_MS),
    allDay: false,
    status: isPast ? "completed" : "scheduled",
    location: prospect.address?.formattedAddress ?? null,
    notes: null,
    assignedToUserId: prospect.assignedToUserId,
    createdBy: prospect.updatedBy,
    createdAt: prospect.updatedAt,
    updatedAt: prospect.updatedAt,
    version: 1,
    importId: IMPORT_ID,
  };
}
