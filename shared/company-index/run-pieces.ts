/** Reads the pieces of runs that flushes, merges and checks work on. */
import type { Run } from "#shared/company-index/manifest.ts";
import type { RunToMerge } from "#shared/company-index/merge.ts";
import type { NoteText } from "#shared/company-index/row.ts";
import { decodeNotes, decodeOverrides, noOverrides, type Overrides } from "#shared/company-index/run.ts";
import { columnsOf, type SegmentColumns } from "#shared/company-index/segment.ts";
import { readPieces } from "#shared/company-index/store.ts";
import type { Table } from "#shared/db/table.ts";

export interface Aside {
  readonly overrides: Overrides;
  readonly looseNotes: readonly NoteText[];
}

export const noAside: Aside = { overrides: noOverrides, looseNotes: [] };

/** Of each run, in one round. */
export async function readAsides(table: Table, companyId: number, runs: readonly Run[]): Promise<Aside[]> {
  const pieces = runs.flatMap(({ id, overrides, looseNotes }) => [
    { owner: id, name: "overrides", parts: overrides },
    { owner: id, name: "notes", parts: looseNotes },
  ]);
  const bytes = await readPieces(table, companyId, pieces);
  return runs.map((run, i) => asideOf(run, bytes[2 * i], bytes[2 * i + 1]));
}

const asideOf = (run: Run, overrides: Uint8Array | undefined, notes: Uint8Array | undefined): Aside => ({
  overrides:
    overrides === undefined || run.overrides === 0
      ? fewOverridesOf(run)
      : decodeOverrides(`overrides of ${run.id}`, overrides),
  looseNotes: notes === undefined || run.looseNotes === 0 ? [] : decodeNotes(`notes of ${run.id}`, notes),
});

/** Those that stand in the run's sheet. */
export const fewOverridesOf = ({ id, fewOverrides }: Run): Overrides =>
  fewOverrides === undefined ? noOverrides : decodeOverrides(`overrides of ${id}`, fewOverrides);

/** Each call of what it gives decodes a segment anew: only its compressed bytes stay in memory. */
export async function readSegments(
  table: Table,
  companyId: number,
  { segments }: Pick<Run, "segments">,
): Promise<(() => SegmentColumns)[]> {
  const bytes = await readPieces(
    table,
    companyId,
    segments.flatMap(({ id, parts }) =>
      (["main", "geo", "text"] as const).map((name) => ({ owner: id, name, parts: parts[name] })),
    ),
  );
  return segments.map(({ id }, i) => {
    const [main, geo, text] = bytes.slice(3 * i);
    if (main === undefined || geo === undefined || text === undefined)
      throw new Error("fewer pieces than were asked for");
    return () => columnsOf(id, { main, geo, text });
  });
}

/** Their ages count from 0. */
export async function runsToMerge(table: Table, companyId: number, runs: readonly Run[]): Promise<RunToMerge[]> {
  const asides = await readAsides(table, companyId, runs);
  const toMerge: RunToMerge[] = [];
  for (const [age, run] of runs.entries()) {
    const segments = await readSegments(table, companyId, run);
    toMerge.push({ age, segments, ...(asides[age] ?? noAside) });
  }
  return toMerge;
}
