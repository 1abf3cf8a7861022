/** What was seen in a company's index of each record: how often, with which version and content. */
import { createHash } from "node:crypto";
import type { Witness } from "#shared/company-index/inspect.ts";
import type { NotePlace } from "#shared/company-index/records.ts";
import type { IndexEntry, IndexRow, NoteText } from "#shared/company-index/row.ts";

/** Records in question. */
export class Suspects {
  readonly prospects = new Set<number>();
  /** By note, its prospect. */
  readonly notes = new Map<number, number>();

  get size(): number {
    return this.prospects.size + this.notes.size;
  }

  notePlaces(): NotePlace[] {
    return [...this.notes].map(([noteId, prospectId]) => ({ prospectId, noteId }));
  }

  /** The prospects in question, and those whose notes are. */
  prospectIds(): number[] {
    return [...new Set([...this.prospects, ...this.notes.values()])];
  }

  /** The first ones, so many that there is room for them. */
  first(count: number): Suspects {
    const some = new Suspects();
    for (const id of this.prospects) if (some.size < count) some.prospects.add(id);
    for (const [id, prospectId] of this.notes) if (some.size < count) some.notes.set(id, prospectId);
    return some;
  }
}

/** A record as it was seen, without its content: a million take some 200 MB. */
export interface Sighting {
  readonly version: number;
  /** 48 bits that tell contents apart. */
  readonly print: number;
  readonly prospectId: number;
}

export const sightingOf = (record: IndexEntry | NoteText): Sighting => ({
  version: record.version,
  print: createHash("sha1").update(canonical(record)).digest().readUIntBE(0, 6),
  prospectId: "noteId" in record ? record.prospectId : record.id,
});

/** Equal text for equal content: fields in one order. */
const canonical = (record: IndexEntry | NoteText): string => JSON.stringify(Object.entries(record).sort());

/** `only`: of all other records nothing is kept. */
export class Sightings implements Witness {
  readonly prospects = new Map<number, Sighting>();
  readonly notes = new Map<number, Sighting>();
  /** How often a record was seen, where it was more than once. */
  readonly repeated = { prospects: new Map<number, number>(), notes: new Map<number, number>() };
  readonly #only: { readonly prospects: ReadonlySet<number>; readonly notes: ReadonlyMap<number, number> } | undefined;

  constructor(only?: Suspects) {
    this.#only = only === undefined ? undefined : { prospects: new Set(only.prospectIds()), notes: only.notes };
  }

  prospect(row: IndexRow): void {
    if (this.#only?.prospects.has(row.id) === false) return;
    if (this.prospects.has(row.id)) countUp(this.repeated.prospects, row.id);
    this.prospects.set(row.id, sightingOf(row));
  }

  note(note: NoteText): void {
    if (this.#only?.notes.has(note.noteId) === false) return;
    if (this.notes.has(note.noteId)) countUp(this.repeated.notes, note.noteId);
    this.notes.set(note.noteId, sightingOf(note));
  }

  /** A deleted prospect takes its notes along, at the latest when its runs are merged: until then no search finds them. */
  forgetNotesOfNobody(): void {
    for (const [id, { prospectId }] of this.notes) if (!this.prospects.has(prospectId)) this.notes.delete(id);
  }
}

const countUp = (counts: Map<number, number>, id: number): void => {
  counts.set(id, (counts.get(id) ?? 1) + 1);
};
