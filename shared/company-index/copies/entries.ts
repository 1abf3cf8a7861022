/** Finds the copies of prospects, notes and appointments in the unflushed entries (recent changes) of a company's search index. */
import type { AppointmentChange, NoteChange } from "#shared/company-index/change-log.ts";
import {
  appointmentsIn,
  appointmentsText,
  type CopiedAppointment,
  type CopiedNote,
  noteIn,
  unpackAppointment,
  unpackNote,
} from "#shared/company-index/copies/attached.ts";
import { type ProspectCopy, prospectCopyIn } from "#shared/company-index/copies/prospect.ts";
import type { AttachedCopy } from "#shared/company-index/copies/rows.ts";
import type { PackedAttached, Unflushed } from "#shared/company-index/delta.ts";
import { type IndexEntry, isTombstone } from "#shared/company-index/record.ts";

/** The version of a record whose copy is wanted. */
interface Wanted {
  readonly id: number;
  readonly version: number;
}

/** The change of a note or appointment. */
export type AttachedChange = NoteChange | AppointmentChange;

/** The copies in the newest entry of each record. They are unpacked only when they are needed. */
export class EntryCopies {
  readonly #entries: ReadonlyMap<number, IndexEntry>;
  readonly #attached: ReadonlyMap<number, PackedAttached>;

  constructor({ entries, attached }: Pick<Unflushed, "entries" | "attached">) {
    [this.#entries, this.#attached] = [newestOf(entries), newestOf(attached)];
  }

  /** Returns the copies of all prospects that have one. */
  prospects(): ProspectCopy[] {
    return [...this.#entries.values()].flatMap((entry) => this.prospect(entry) ?? []);
  }

  prospect({ id, version }: Wanted): ProspectCopy | undefined {
    const entry = this.#entries.get(id);
    return entry?.version === version && !isTombstone(entry) ? prospectCopyIn(entry) : undefined;
  }

  /** Returns the copy of the note or appointment as text, which `noteIn` and `appointmentsIn` can read. */
  attached(change: AttachedChange): AttachedCopy | undefined {
    const { id, version, kind } = change;
    const packed = this.#attached.get(id);
    if (packed?.version === version) {
      const { bytes, text } = packed;
      return { id, version, text: kind === "note" ? unpackNote(id, bytes, text) : unpackAppointment(id, bytes) };
    }
    const included = kind === "appointment" ? this.#included(change) : undefined;
    return included === undefined ? undefined : { id, version, text: appointmentsText([included]) };
  }

  /** Returns the appointment from the copy of its prospect. */
  #included({ id, version, prospectId }: AppointmentChange): CopiedAppointment | undefined {
    const entry = this.#entries.get(prospectId);
    const copy = entry === undefined ? undefined : this.prospect(entry);
    return copy?.upcoming.find((one) => one.id === id && one.version === version);
  }
}

function newestOf<T extends Wanted>(all: readonly T[]): ReadonlyMap<number, T> {
  const newest = new Map<number, T>();
  for (const one of all) if ((newest.get(one.id)?.version ?? 0) < one.version) newest.set(one.id, one);
  return newest;
}

/** Returns the fields of the copied note. The log must say when the note was created. */
export const noteOf = ({ text }: AttachedCopy, { createdAt = 0 }: NoteChange): CopiedNote => noteIn(text, createdAt);

export const appointmentOf = ({ text }: AttachedCopy): CopiedAppointment | undefined => appointmentsIn(text)[0];
