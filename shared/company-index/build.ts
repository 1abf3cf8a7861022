/** A run as it will be stored: rows and entries -> segments with their zone maps, overrides and loose notes. */
import { cutIntoSegments, SEGMENT_ROWS } from "#shared/company-index/arrange.ts";
import type { NoteText } from "#shared/company-index/row.ts";
import { encodeNotes, encodeOverrides } from "#shared/company-index/run.ts";
import { encodeSegment, type Group, type RowWithNotes } from "#shared/company-index/segment.ts";
import { type Zone, zoneOf } from "#shared/company-index/zone.ts";

export interface BuiltSegment {
  readonly rows: number;
  readonly zone: Zone;
  readonly groups: Record<Group, Uint8Array>;
}

/** `rows` in the order of the curve. One segment at a time, so that a run may be larger than memory. */
export function* buildSegments(rows: Iterable<RowWithNotes>, maxRows = SEGMENT_ROWS): Generator<BuiltSegment> {
  for (const entries of cutIntoSegments(rows, maxRows)) {
    yield { rows: entries.length, zone: zoneOf(entries.map(({ row }) => row)), groups: encodeSegment(entries) };
  }
}

interface Versioned {
  readonly id: number;
  readonly version: number;
}

/** Undefined where there is nothing to store. */
export interface BuiltAside {
  readonly overrides: Uint8Array | undefined;
  readonly looseNotes: Uint8Array | undefined;
}

export const buildAside = (
  prospects: readonly Versioned[],
  notes: readonly Versioned[],
  looseNotes: readonly NoteText[],
): BuiltAside => ({
  overrides: prospects.length + notes.length === 0 ? undefined : encodeOverrides(prospects, notes),
  looseNotes: looseNotes.length === 0 ? undefined : encodeNotes(looseNotes),
});
