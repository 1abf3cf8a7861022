/**
 * The doors that the field mode shows: the prospects that are stored on this device, each with its notes and appointments, and with the
 * changes that the service has not confirmed yet.
 */
import type { Appointment, Prospect, StatusSummary } from "canvassing-client/api";
import type { Entry, StoredRecord } from "canvassing-client/store";
import type { Position } from "./distance.ts";
import { placeOf, type Stop } from "./street.ts";

type Text = string | null;

/** The fields of a prospect that a rep reads and changes at a door. */
export interface DoorFields {
  readonly name: Text;
  readonly phoneNumber: Text;
  readonly secondaryPhoneNumber: Text;
  readonly emailAddress: Text;
  readonly address: { address1: string; address2: Text; city: string; state: string; zip: string } | null;
}

export interface DoorNote {
  readonly key: string;
  readonly body: string;
  readonly at: string;
}

export interface DoorAppointment extends Pick<Appointment, "title" | "startAt" | "status"> {
  readonly key: string;
  /** Undefined until this device has downloaded the appointment from the service. Until then, the user cannot change the appointment. */
  readonly id: number | undefined;
}

export interface Door extends Stop, DoorFields {
  /** Undefined until the service has created the prospect. */
  readonly id: number | undefined;
  readonly clientRecordId: string | undefined;
  readonly version: number | undefined;
  readonly status: StatusSummary | null;
  readonly tags: readonly number[];
  /** The newest first. */
  readonly notes: readonly DoorNote[];
  /** The earliest first. */
  readonly appointments: readonly DoorAppointment[];
  /** The changes that the service has not confirmed, in the order in which the user made them. */
  readonly pending: readonly Entry[];
}

/** The records that are stored on this device, by names such as `prospects/17`. */
export class Records {
  readonly all = new Map<string, StoredRecord>();

  of<Type extends StoredRecord["type"]>(type: Type): Extract<StoredRecord, { type: Type }>[] {
    const isOf = (record: StoredRecord): record is Extract<StoredRecord, { type: Type }> => record.type === type;
    return [...this.all.values()].filter(isOf);
  }
}

/** Returns all doors by their keys, as they are without the outbox. The key of a door is the name of its record in the outbox. */
export function confirmedDoors(records: Records): Map<string, Door> {
  const notes = Map.groupBy(records.of("notes"), ({ data }) => data.prospectId);
  const appointments = Map.groupBy(records.of("appointments"), ({ data }) => data.prospectId);
  return new Map(
    records.of("prospects").map(({ id, version, data }) => {
      const key = `prospects/${data.clientRecordId ?? id}`;
      const door: Door = {
        ...fieldsOf(data),
        key,
        id,
        version,
        clientRecordId: data.clientRecordId,
        status: data.currentStatus,
        tags: data.tags.map(({ tag }) => tag.id),
        notes: (notes.get(id) ?? [])
          .map(({ data: note }) => ({ key: `${note.id}`, body: note.body, at: note.occurredAt ?? note.createdAt }))
          .sort((a, b) => (a.at < b.at ? 1 : -1)),
        appointments: (appointments.get(id) ?? [])
          .map(({ data: { id: appointment, title, startAt, status } }) => ({
            key: `${appointment}`,
            id: appointment,
            title,
            startAt,
            status,
          }))
          .sort(byBeginning),
        pending: [],
      };
      return [key, door];
    }),
  );
}

function fieldsOf({ lat, lng, address, ...fields }: Prospect): DoorFields & Pick<Door, "place" | "position"> {
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress } = fields;
  return {
    ...{ name, phoneNumber, secondaryPhoneNumber, emailAddress, address },
    place: address === null ? undefined : placeOf(address),
    position: positionOf(lat, lng),
  };
}

const positionOf = (lat: unknown, lng: unknown): Position | undefined =>
  typeof lat === "number" && typeof lng === "number" ? [lng, lat] : undefined;

const byBeginning = (a: { startAt: string }, b: { startAt: string }): number =>
  a.startAt < b.startAt ? -1 : a.startAt > b.startAt ? 1 : 0;

/** Returns the doors as they are after the operations in the outbox, so without deleted prospects and with new ones. */
export function withOutbox(
  confirmed: ReadonlyMap<string, Door>,
  outbox: readonly Entry[],
  statuses: ReadonlyMap<number, StatusSummary>,
): ReadonlyMap<string, Door> {
  if (outbox.length === 0) return confirmed;
  const doors = new Map(confirmed);
  const ofAppointments = outbox.some(({ operation }) => operation.type === "appointment.update")
    ? [...confirmed.values()]
    : [];
  const byAppointment = new Map(
    ofAppointments.flatMap(({ key, appointments }) => appointments.map(({ id }) => [`appointments/${id}`, key])),
  );
  for (const entry of outbox) {
    const key = byAppointment.get(entry.record) ?? entry.record;
    const door = doors.get(key) ?? newDoor(entry);
    if (door === undefined) continue;
    if (entry.operation.type === "prospect.delete") doors.delete(key);
    else doors.set(key, changed({ ...door, pending: [...door.pending, entry] }, entry, statuses));
  }
  return doors;
}

function newDoor({ operation: { type, clientRecordId }, record }: Entry): Door | undefined {
  if (type !== "prospect.create") return undefined;
  return {
    ...{ name: null, phoneNumber: null, secondaryPhoneNumber: null, emailAddress: null, address: null },
    ...{ key: record, id: undefined, version: undefined, clientRecordId, place: undefined, position: undefined },
    ...{ status: null, tags: [], notes: [], appointments: [], pending: [] },
  };
}

function changed(door: Door, entry: Entry, statuses: ReadonlyMap<number, StatusSummary>): Door {
  const { type, id, fields = {}, occurredAt = "" } = entry.operation;
  const key = entry.opId;
  switch (type) {
    case "prospect.create":
    case "prospect.update":
      return withFields(door, fields, statuses);
    case "prospect.tags":
      return {
        ...door,
        tags: Array.isArray(fields.tagIds) ? fields.tagIds.filter((tag) => typeof tag === "number") : [],
      };
    case "note.create":
      return { ...door, notes: [{ key, body: textOf(fields.body), at: occurredAt }, ...door.notes] };
    case "appointment.create": {
      const made = {
        key,
        id: undefined,
        title: textOf(fields.title),
        startAt: textOf(fields.startAt),
        status: "scheduled",
      };
      return { ...door, appointments: [...door.appointments, made].sort(byBeginning) };
    }
    case "appointment.update":
      return {
        ...door,
        appointments: door.appointments
          .map((one) => (one.id === id ? { ...one, ...texts(fields, ["title", "startAt", "status"]) } : one))
          .sort(byBeginning),
      };
    default:
      return door;
  }
}

function withFields(
  door: Door,
  fields: Readonly<Record<string, unknown>>,
  statuses: ReadonlyMap<number, StatusSummary>,
): Door {
  const { address, lat, lng, currentStatusId } = fields;
  const names = ["name", "phoneNumber", "secondaryPhoneNumber", "emailAddress"] as const;
  const next: Door = { ...door, ...texts(fields, names) };
  const placed = isAddress(address) ? { address, place: placeOf(address) } : {};
  const moved = lat === undefined ? {} : { position: positionOf(lat, lng) };
  const status = currentStatusId === undefined ? {} : { status: summaryOf(statuses.get(Number(currentStatusId))) };
  return { ...next, ...placed, ...moved, ...status };
}

const summaryOf = (status: StatusSummary | undefined): StatusSummary | null =>
  status === undefined ? null : { id: status.id, value: status.value, color: status.color };

const isAddress = (value: unknown): value is NonNullable<DoorFields["address"]> =>
  typeof value === "object" && value !== null && "address1" in value && typeof value.address1 === "string";

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns those of the named fields whose values are strings or null. */
const texts = (fields: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, Text> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = fields[name];
      return typeof value === "string" || value === null ? [[name, value]] : [];
    }),
  );

/** Returns the first line of a door: its street and number, or its name. */
export const titleOf = ({ address, name }: Pick<Door, "address" | "name">): string =>
  address === null ? (name ?? "No address") : [address.address1, address.address2].filter(Boolean).join(", ");

/** Returns the id that names the door in an operation: the service's id, or before the service has created the door, this device's id. */
export const targetOf = ({ id, clientRecordId }: Pick<Door, "id" | "clientRecordId">) => ({
  ...(id !== undefined && { id }),
  ...(id === undefined && clientRecordId !== undefined && { clientRecordId }),
});
