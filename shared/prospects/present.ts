/** Converts stored rows to the form that the API shows. */
import * as z from "zod/mini";
import type { UserSummary } from "#shared/auth/user-schema.ts";
import type { ProspectDetail } from "#shared/prospects/detail.ts";
import type { Appointment, Note, Prospect } from "#shared/prospects/schema.ts";
import type { StoredAppointment, StoredNote, StoredProspect, StoredStatusChange } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import type { StatusSummary, StoredStatus } from "#shared/reference/schema.ts";
import { userSummary } from "#shared/reference/users.ts";

interface ProspectRows {
  readonly prospect: StoredProspect;
  /** The notes in the response, the newest first. */
  readonly notes: readonly StoredNote[];
  readonly appointments: readonly StoredAppointment[];
  /** All status changes except the last one, in any order. The last one is in the prospect's row. */
  readonly history: readonly StoredStatusChange[];
}

/** `upcoming` is the result of `nextAppointment`. */
export function presentProspect(
  prospect: StoredProspect,
  upcoming: StoredAppointment | undefined,
  dictionary: Dictionary,
): Prospect {
  return {
    ...presentFields(prospect, dictionary),
    appointments: upcoming === undefined ? [] : [presentAppointment(upcoming, dictionary)],
  };
}

export function presentDetail(rows: ProspectRows, dictionary: Dictionary): ProspectDetail {
  return {
    ...presentFields(rows.prospect, dictionary),
    notes: rows.notes.map((note) => presentNote(note, dictionary)),
    appointments: rows.appointments.toSorted(soonestFirst).map((entry) => presentAppointment(entry, dictionary)),
    statusHistory: [rows.prospect.lastStatusChange ?? [], rows.history]
      .flat()
      .sort((a, b) => b.version - a.version)
      .map((change) => ({ ...change, changedBy: summaryOf(change.changedBy, dictionary) })),
  };
}

/** Returns exactly the fields of `prospectFields`, in the same order, because lists do not parse most prospects with the schema. */
function presentFields(prospect: StoredProspect, { statuses, tags, users }: Dictionary) {
  const { statusId, assignedToUserId, tagIds, customFieldData, clientRecordId } = prospect;
  return {
    id: prospect.id,
    name: prospect.name,
    phoneNumber: prospect.phoneNumber,
    secondaryPhoneNumber: prospect.secondaryPhoneNumber,
    emailAddress: prospect.emailAddress,
    lat: prospect.lat,
    lng: prospect.lng,
    source: prospect.source,
    sourceId: prospect.sourceId,
    sourceCreatedAt: prospect.sourceCreatedAt,
    ...(clientRecordId !== undefined && { clientRecordId }),
    customFieldData: customFieldData === null ? null : CustomFieldJson.parse(JSON.parse(customFieldData)),
    createdAt: prospect.createdAt,
    updatedAt: prospect.updatedAt,
    address: prospect.address,
    currentStatus: statusId === null ? null : statusSummary(statuses.get(statusId)),
    assignedTo: assignedToUserId === null ? null : userSummary(users.get(assignedToUserId)),
    tags: tagIds.flatMap((id) => {
      const tag = tags.get(id);
      return tag === undefined ? [] : [{ tag: { id: tag.id, value: tag.value, color: tag.color } }];
    }),
  };
}

/** The content is not validated again, because the write has validated it. */
const CustomFieldJson = z.custom<Record<string, unknown>>((value) => typeof value === "object" && value !== null);

export function statusSummary(status: StoredStatus | undefined): StatusSummary | null {
  if (status === undefined) return null;
  const { id, value, color } = status;
  return { id, value, color };
}

const summaryOf = (userId: number | null, dictionary: Dictionary): UserSummary | null =>
  userId === null ? null : userSummary(dictionary.users.get(userId));

export const presentNote = (note: StoredNote, dictionary: Dictionary): Note => ({
  ...note,
  createdBy: summaryOf(note.createdBy, dictionary),
});

export const presentAppointment = (appointment: StoredAppointment, dictionary: Dictionary): Appointment => ({
  id: appointment.id,
  prospectId: appointment.prospectId,
  title: appointment.title,
  startAt: appointment.startAt,
  endAt: appointment.endAt,
  allDay: appointment.allDay,
  status: appointment.status,
  location: appointment.location,
  notes: appointment.notes,
  createdAt: appointment.createdAt,
  updatedAt: appointment.updatedAt,
  ...(appointment.occurredAt !== undefined && { occurredAt: appointment.occurredAt }),
  assignedTo: summaryOf(appointment.assignedToUserId, dictionary),
  createdBy: summaryOf(appointment.createdBy, dictionary),
});

export const soonestFirst = (a: { startAt: string; id: number }, b: { startAt: string; id: number }): number =>
  a.startAt < b.startAt ? -1 : a.startAt > b.startAt ? 1 : a.id - b.id;
