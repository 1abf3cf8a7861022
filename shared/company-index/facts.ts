/** The facts that activity reports count. Delta entries contain them. Imports add no entries, and have `ImportedFacts` instead. */
import { at, byteAt, doubleAt } from "#shared/at.ts";
import {
  ByteReader,
  ByteWriter,
  compress,
  decompress,
  idOrZero,
  readNumbers,
  writeNumbers,
} from "#shared/company-index/encoding.ts";
import type { IndexRow } from "#shared/company-index/record.ts";
import { column, type RowWithNotes } from "#shared/company-index/segment.ts";

export const factKinds = ["creation", "statusChange", "note", "appointment"] as const;
export type FactKind = (typeof factKinds)[number];

/** `at` is in milliseconds since 1970. */
export interface Fact {
  readonly kind: FactKind;
  /** The user who created the prospect, changed the status, or added the note or appointment. */
  readonly userId: number;
  readonly at: number;
  /** The status of a new prospect, or the status after a change. Null for notes and appointments. */
  readonly statusId: number | null;
  readonly prospectId: number;
  /** The id of the note or appointment, or the version of the prospect. `kind`, `prospectId` and this value identify the fact. */
  readonly record: number;
}

export const identityOf = ({ kind, prospectId, record }: Fact): string => `${kind} ${prospectId} ${record}`;

/** The facts of an import. All its prospects have one creation time. In each bitmap, bit i is for the prospect with the id `first` + i. */
export interface ImportedFacts {
  readonly userId: number;
  readonly at: number;
  readonly first: number;
  readonly created: Uint8Array;
  readonly withStatus: Uint8Array;
  readonly withNote: Uint8Array;
  /** The number of prospects by status. The key null is for prospects without a status. */
  readonly byStatus: ReadonlyMap<number | null, number>;
}

export interface FactFields {
  /** The user who caused the fact. Undefined in an entry without a fact. */
  readonly by?: number | undefined;
  /** The time of the fact in milliseconds since 1970. Undefined if this is the creation time of the record. */
  readonly at?: number | undefined;
  /** The new status of a change that was reported late, if it is not the current status of the prospect. 0 means no status. */
  readonly past?: number | undefined;
}

/** Returns the facts of a prospect's entry. `appointmentId` is the id of the appointment that the same transaction has created. */
export function factsOfProspect(
  { id: prospectId, version, createdAt, statusId: present }: IndexRow,
  { by, at = createdAt, past }: FactFields,
  appointmentId: number | undefined,
): Fact[] {
  if (by === undefined) return [];
  const common = { userId: by, at, prospectId };
  if (appointmentId !== undefined) return [{ ...common, kind: "appointment", statusId: null, record: appointmentId }];
  const statusId = past === undefined ? present : past || null;
  const change: Fact = { ...common, kind: "statusChange", statusId, record: version };
  if (version > 1) return [change];
  const creation: Fact = { ...common, kind: "creation", at: createdAt, statusId, record: version };
  return statusId === null ? [creation] : [creation, change];
}

/** Pass the facts sorted by time: they then need the least space. */
export function encodeFacts(facts: readonly Fact[]): Uint8Array {
  const into = new ByteWriter();
  into.integer(facts.length);
  for (const { kind } of facts) into.integer(factKinds.indexOf(kind));
  for (const field of ["at", "userId", "prospectId", "record"] as const) {
    writeNumbers(into, column(facts, field));
  }
  writeNumbers(
    into,
    facts.map(({ statusId }) => idOrZero(statusId)),
  );
  return compress(into.finish());
}

export const decodeFacts = (bytes: Uint8Array): Fact[] =>
  decompress("a row of the activity log", bytes, (plain) => {
    const from = new ByteReader(plain);
    const count = from.integer();
    const kinds = Array.from({ length: count }, () => at(factKinds, from.integer()));
    const column = () => readNumbers(from, count);
    const [times, userIds, prospectIds, records, statusIds] = [column(), column(), column(), column(), column()];
    return kinds.map((kind, i) => ({
      kind,
      userId: doubleAt(userIds, i),
      at: doubleAt(times, i),
      statusId: statusIds[i] || null,
      prospectId: doubleAt(prospectIds, i),
      record: doubleAt(records, i),
    }));
  });

/** Collects the facts of the rows of an import. All rows must have the same creation time. */
export class ImportCollector {
  readonly facts: ImportedFacts & { at: number; readonly byStatus: Map<number | null, number> };

  /** @param last the last id of the range from which the imported prospects get their ids, included */
  constructor(userId: number, first: number, last: number) {
    const bitmap = () => new Uint8Array(Math.ceil((last - first + 1) / 8));
    const bitmaps = { created: bitmap(), withStatus: bitmap(), withNote: bitmap() };
    this.facts = { userId, at: 0, first, byStatus: new Map(), ...bitmaps };
  }

  *passing(rows: Iterable<RowWithNotes>): Generator<RowWithNotes> {
    const { first, created, withStatus, withNote, byStatus } = this.facts;
    for (const one of rows) {
      const { id, createdAt, statusId } = one.row;
      setBit(created, id - first);
      if (statusId !== null) setBit(withStatus, id - first);
      if (one.notes.length > 0) setBit(withNote, id - first);
      byStatus.set(statusId, (byStatus.get(statusId) ?? 0) + 1);
      this.facts.at = createdAt;
      yield one;
    }
  }
}

export function encodeImported({ userId, at, first, byStatus, ...bitmaps }: ImportedFacts): Uint8Array {
  const into = new ByteWriter();
  for (const value of [userId, at, first, byStatus.size, bitmaps.created.length]) into.integer(value);
  for (const [statusId, count] of byStatus) {
    into.integer(idOrZero(statusId));
    into.integer(count);
  }
  for (const bits of [bitmaps.created, bitmaps.withStatus, bitmaps.withNote]) into.raw(bits);
  return compress(into.finish());
}

export const decodeImported = (bytes: Uint8Array): ImportedFacts =>
  decompress("a row of the activity log", bytes, (plain) => {
    const from = new ByteReader(plain);
    const [userId, at, first] = [from.integer(), from.integer(), from.integer()];
    const [statuses, length] = [from.integer(), from.integer()];
    const byStatus = new Map<number | null, number>();
    for (let i = 0; i < statuses; i++) byStatus.set(from.integer() || null, from.integer());
    const bits = () => from.raw(length);
    return { userId, at, first, byStatus, created: bits(), withStatus: bits(), withNote: bits() };
  });

export function visitImported(
  { first, created, withStatus, withNote }: ImportedFacts,
  visit: (kind: FactKind, prospectId: number) => void,
): void {
  for (let at = 0; at < created.length * 8; at++) {
    if (hasBit(created, at)) visit("creation", first + at);
    if (hasBit(withStatus, at)) visit("statusChange", first + at);
    if (hasBit(withNote, at)) visit("note", first + at);
  }
}

export function countBits(bits: Uint8Array): number {
  let count = 0;
  for (let byte of bits) for (; byte > 0; byte &= byte - 1) count++;
  return count;
}

const setBit = (bits: Uint8Array, at: number): void => {
  bits[at >> 3] = byteAt(bits, at >> 3) | (1 << (at & 7));
};
const hasBit = (bits: Uint8Array, at: number): boolean => (byteAt(bits, at >> 3) & (1 << (at & 7))) !== 0;
