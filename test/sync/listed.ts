/** Reads what the lists of the service show to a user, for a comparison with the copies of a device. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { listAppointments } from "#shared/prospects/calendar.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import { presentUser } from "#shared/reference/invite.ts";
import { Status, Tag } from "#shared/reference/schema.ts";
import { User } from "#shared/reference/user.ts";
import { listUsers } from "#shared/reference/users.ts";
import { listStatuses, listTags } from "#shared/reference/values.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import { listTerritories, Territory } from "#shared/territories/territories.ts";

const DAY_MS = 86_400_000;
const PAGE_SIZE = 100;

const parsed = <T>(list: AsyncIterable<T>, schema: { parse(record: unknown): T }): Promise<T[]> =>
  Array.fromAsync(list, (record) => schema.parse(record));

type Listed = readonly { readonly id: number }[];

async function prospects(context: ApiContext, caller: Caller): Promise<Prospect[]> {
  const found: Prospect[] = [];
  for (let page = 1; ; page++) {
    const { items, total } = await listProspects(context, caller, { page, pageSize: PAGE_SIZE });
    found.push(...items.map((item) => Prospect.parse(item)));
    if (page * PAGE_SIZE >= total) return found;
  }
}

async function notes(context: ApiContext, caller: Caller): Promise<Note[]> {
  const lists = (await prospects(context, caller)).map(async ({ id }) => parsed(listNotes(context, caller, id), Note));
  return (await Promise.all(lists)).flat();
}

/** Number of days before and after now. Appointments in this range are compared. */
const RANGE_DAYS = 180;

async function appointments(context: ApiContext, caller: Caller): Promise<Appointment[]> {
  const now = context.clock.now();
  const range = { from: now - RANGE_DAYS * DAY_MS, to: now + RANGE_DAYS * DAY_MS };
  const list = await listAppointments(context, caller, range);
  return parsed(list, Appointment);
}

const lists: Readonly<Record<ChangeType, (context: ApiContext, caller: Caller) => Promise<Listed>>> = {
  prospects,
  notes,
  appointments,
  territories: (context, { companyId }) => parsed(listTerritories(context, companyId), Territory),
  statuses: async (context, { companyId }) =>
    (await listStatuses(context, companyId)).map((status) => Status.parse(status)),
  tags: async (context, { companyId }) => (await listTags(context, companyId)).map((tag) => Tag.parse(tag)),
  users: async (context, { companyId }) =>
    (await listUsers(context, companyId)).map((user) => User.parse(presentUser(user, context.clock.now()))),
};

/** Returns the records of these types. The keys of the map have the form `type id`. */
export async function listed(
  context: ApiContext,
  caller: Caller,
  types: readonly ChangeType[],
): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (const type of types) {
    for (const record of await lists[type](context, caller)) found.set(`${type} ${record.id}`, record);
  }
  return found;
}
