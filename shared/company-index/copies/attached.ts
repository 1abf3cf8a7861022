/**
 * Copies of notes and appointments, so that `GET /api/changes` can show changed ones without reading their rows one by one. The unflushed
 * entry (recent change) of a note contains a copy of the note. The entry of a prospect contains a copy of the appointment that the same
 * transaction has written. The names of users are not copied, because they may change later.
 */
import * as z from "zod/mini";
import { pack, unpack } from "#shared/company-index/copies/packing.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";

/** The fields of a note that the change log does not contain. */
export interface CopiedNote {
  readonly body: string;
  readonly createdBy: number | null;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** Milliseconds since 1970. Undefined if the note has no such time. */
  readonly occurredAt?: number | undefined;
}

/** Times are in milliseconds since 1970. */
export interface CopiedAppointment {
  readonly id: number;
  readonly version: number;
  readonly title: string;
  readonly startAt: number;
  readonly endAt: number | null;
  readonly allDay: boolean;
  readonly status: CopiedStatus;
  readonly location: string | null;
  readonly notes: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly occurredAt?: number | undefined;
  readonly assignedToUserId: number | null;
  readonly createdBy: number | null;
}

const NoteNumbers = z.tuple([z.nullable(z.int()), z.int(), z.nullable(z.int())]);

/**
 * Returns the copy of a note as text. Times are relative to the creation of the note, so that they have few digits. The body comes last,
 * because it may contain line breaks. Returns undefined if the body contains half of a surrogate pair, which UTF-8 cannot represent.
 */
export function noteText(
  { body, createdBy, updatedAt, occurredAt }: CopiedNote,
  createdAt: number,
): string | undefined {
  if (!body.isWellFormed()) return undefined;
  const occurred = occurredAt === undefined ? null : occurredAt - createdAt;
  return `${JSON.stringify([createdBy, updatedAt - createdAt, occurred])}\n${body}`;
}

export function noteIn(text: string, createdAt: number): CopiedNote {
  const end = text.indexOf("\n");
  const [createdBy, later, occurred] = NoteNumbers.parse(jsonOf("a note", text.slice(0, end)));
  const occurredAt = occurred === null ? undefined : createdAt + occurred;
  return { body: text.slice(end + 1), createdBy, updatedAt: createdAt + later, occurredAt };
}

/**
 * Returns a text to which the compressed copy of a note may refer (see `pack`). Most of the body of a note also occurs in the entry's
 * searchable text `text`, which is in capital letters.
 */
const noteDictionary = (text: string): string => `[null,0,null]\n${text.toLowerCase()}`;

/** Compresses the copy of a note whose searchable text is `text`. Returns undefined if the result is too long. */
export function packNote(note: CopiedNote, createdAt: number, text: string): Uint8Array | undefined {
  const copy = noteText(note, createdAt);
  return copy === undefined ? undefined : pack(copy, noteDictionary(text));
}

export const unpackNote = (id: number, bytes: Uint8Array, text: string): string =>
  unpack(`the copy of note ${id}`, bytes, noteDictionary(text));

/** A copied appointment: its numbers as text, and then its title, its location and its notes. */
const Tuple = z.tuple([z.string(), z.string(), z.nullable(z.string()), z.nullable(z.string())]);
const Tuples = z.array(Tuple);

/** A copy contains the position of the status in this list, so new statuses must be appended at the end. */
const statuses = ["scheduled", "completed", "cancelled", "no_show"] as const;
type CopiedStatus = (typeof statuses)[number];
const RADIX = 36;

/** Writes the numbers with few characters: in base 36, and nothing for null. */
const compact = (numbers: readonly (number | null)[]): string =>
  numbers.map((number) => number?.toString(RADIX) ?? "").join();

const numbersIn = (text: string): (number | null)[] =>
  text.split(",").map((digits) => (digits === "" ? null : Number.parseInt(digits, RADIX)));

/** The end is relative to the start, and the other times are relative to the creation, so that they have few digits. */
function tupleOf({ id, version, createdAt, updatedAt, startAt, endAt, ...more }: CopiedAppointment) {
  const { occurredAt, status, allDay, assignedToUserId, createdBy, title, location, notes } = more;
  const times = [createdAt, updatedAt - createdAt, startAt - createdAt, endAt === null ? null : endAt - startAt];
  const occurred = occurredAt === undefined ? null : occurredAt - createdAt;
  const kind = 2 * statuses.indexOf(status) + (allDay ? 1 : 0);
  return [compact([id, version, ...times, occurred, kind, assignedToUserId, createdBy]), title, location, notes];
}

function appointmentOf([numbers, title, location, notes]: z.infer<typeof Tuple>): CopiedAppointment {
  const [id, version, created, updatedLater, startLater, duration, occurred, kind, ...users] = numbersIn(numbers);
  const [assignedToUserId = null, createdBy = null] = users;
  const createdAt = created ?? 0;
  const startAt = createdAt + (startLater ?? 0);
  const endAt = duration == null ? null : startAt + duration;
  const occurredAt = occurred == null ? undefined : createdAt + occurred;
  const status = statuses[Math.floor((kind ?? 0) / 2)];
  if (status === undefined) throw new IndexUnreadable("the copy of an appointment has an unknown status");
  const times = { startAt, endAt, createdAt, updatedAt: createdAt + (updatedLater ?? 0), occurredAt };
  const texts = { title, status, location, notes };
  return {
    id: id ?? 0,
    version: version ?? 0,
    ...texts,
    allDay: (kind ?? 0) % 2 === 1,
    assignedToUserId,
    createdBy,
    ...times,
  };
}

/** Returns the copies of appointments as JSON, which contains no line break. */
export const appointmentsText = (all: readonly CopiedAppointment[]): string => JSON.stringify(all.map(tupleOf));

export const appointmentsIn = (text: string): CopiedAppointment[] =>
  Tuples.parse(jsonOf("an appointment", text)).map(appointmentOf);

/** Texts that most copies of appointments contain. They are part of the dictionary of the compression. */
export const APPOINTMENT_TEXTS = `",null,null]]\n[["`;

export const packAppointment = (appointment: CopiedAppointment): Uint8Array | undefined =>
  pack(appointmentsText([appointment]), APPOINTMENT_TEXTS);

export const unpackAppointment = (id: number, bytes: Uint8Array): string =>
  unpack(`the copy of appointment ${id}`, bytes, APPOINTMENT_TEXTS);

function jsonOf(label: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new IndexUnreadable(`the copy of ${label} is damaged`, { cause: error });
  }
}
