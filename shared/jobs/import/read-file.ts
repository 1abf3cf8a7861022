/** Reads the file of an import, by upload or within one request: a row gives a draft, a change of a prospect, or a fault. */
import { folded } from "#shared/caseless.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { FileKeys, type Matches } from "#shared/jobs/import/match.ts";
import type { Counts } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { nearestOf } from "#shared/nearest.ts";
import type { RowChange } from "#shared/prospects/csv/change.ts";
import { type Draft, draftOf, filledCellsOf, type Names, quoted } from "#shared/prospects/csv/draft.ts";
import { type Bytes, decoded, type Encoding } from "#shared/prospects/csv/encoding.ts";
import { BadFile, type Column } from "#shared/prospects/csv/format.ts";
import {
  cellsOf,
  fillsUnnamed,
  type Header,
  isFilled,
  isTooLong,
  LostColumns,
  type Mapping,
  nothingFilled,
  readHeader,
} from "#shared/prospects/csv/header.ts";
import { type CsvRow, openCsv } from "#shared/prospects/csv/read.ts";
import { isId, keyIn, type MatchBy, type OnMatch } from "#shared/prospects/match-key.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

const keyColumns: Readonly<Record<MatchBy, Column>> = { id: "id", sourceId: "sourceId", emailAddress: "email" };

/** `warnings`: the number of faulty values that the import leaves empty, which it does only in columns that the file names by a synonym. */
type ReadRow =
  | { readonly row: number; readonly draft: Draft; readonly warnings: number }
  | { readonly row: number; readonly change: RowChange; readonly warnings: number }
  | FaultyRow;
export type ChangedRow = Extract<ReadRow, { change: unknown }>;

export interface FaultyRow {
  readonly row: number;
  /** Why the row is skipped, with the faulty values. */
  readonly fault: string;
  /** The reason without the faulty values, for an error report that has no more room for values. */
  readonly plain?: string;
}

/** How the rows are matched with existing prospects. An import without this setting creates a prospect for each row. */
export interface Matching {
  readonly by: MatchBy;
  readonly onMatch: Exclude<OnMatch, "create">;
  readonly matches: Matches;
}

/** An import reads its file several times, with the same options. */
export interface FileReading {
  readonly encoding: Encoding;
  readonly dictionary: Dictionary;
  readonly mapping?: Mapping | undefined;
  readonly matching?: Matching | undefined;
}

export interface Reading extends FileReading {
  readonly tags: NewTags;
  /** Rows up to this number are skipped, because an earlier invocation has handled them. */
  readonly after: number;
  /** Rows whose errors are already reported. They are not parsed again, because a row with many errors takes long to parse. */
  readonly known?: ReadonlySet<number>;
}

/**
 * Yields the rows with data in the order of the file, and returns the headers of the columns that the import does not read. An empty string
 * means that a column without a header has values. Throws BadFile where the file is not CSV, and at the end if it is empty, or if no row
 * has a name, phone, e-mail, address, coordinates or key of a prospect: it is then probably not a list of prospects.
 */
async function* readRows(
  bytes: Bytes,
  { encoding, dictionary, tags, mapping, after, matching, known }: Reading,
): AsyncGenerator<ReadRow, readonly string[], undefined> {
  const nearest = nearestIn(dictionary);
  const names = {
    active: { ...namesOf(dictionary, true), nearest },
    all: { ...namesOf(dictionary, false), nearest },
  };
  const { delimiter, rows } = await openCsv(decoded(bytes, encoding));
  const keyColumn = matching === undefined ? undefined : keyColumns[matching.by];
  const first = await rows.next();
  if (first.done === true) throw new BadFile("The file is empty.");
  const header = readHeader(first.value.cells, { mapping, delimiter, keyColumn });
  const lost = new LostColumns(header);
  let [isEmpty, isAnyFilled, isUnnamedFilled] = [true, false, false];
  for await (const { row, cells } of rows) {
    isEmpty = false;
    lost.meet(cells);
    isUnnamedFilled ||= fillsUnnamed(cells, header);
    const target = matching === undefined ? undefined : targetOf(row, cells, header, matching);
    isAnyFilled ||= target !== undefined || isFilled(cells, header);
    if (row <= after) continue;
    if (known?.has(row)) yield { row, fault: "" };
    else yield withTags(readRow({ row, cells }, header, names, target), tags);
  }
  if (!isEmpty && !isAnyFilled) throw nothingFilled();
  const ignored = [...header.ignored, ...(isUnnamedFilled ? [""] : []), ...lost.titles];
  return ignored.slice(0, limits.ignoredColumns);
}

type Target = number | { readonly fault: string };

/** Returns the id of the prospect that the row changes, or its fault, or undefined if the row creates a prospect. */
function targetOf(
  row: number,
  cells: readonly string[],
  header: Header,
  { by, onMatch, matches }: Matching,
): Target | undefined {
  const column = keyColumns[by];
  const key = isTooLong(cells, header) ? undefined : keyIn(by, cellsOf(cells, header)(column));
  if (key === undefined) return undefined;
  const match = matches.of(row);
  if (match.kind === "repeated") return { fault: `${column}: row ${match.row} has the same value` };
  if (match.kind === "several") return { fault: `${column}: several prospects have this value` };
  if (match.kind === "one") {
    return onMatch === "update" ? match.id : { fault: `${column}: prospect ${match.id} has this value already` };
  }
  // A row with an unknown id cannot create a prospect, because only the service assigns ids.
  return by === "id" ? { fault: "id: must be the id of a prospect that you can see" } : undefined;
}

function readRow(
  { row, cells }: CsvRow,
  header: Header,
  { active, all }: Readonly<Record<"active" | "all", Names>>,
  target: Target | undefined,
): ReadRow {
  if (typeof target === "object") return { row, ...target };
  if (target === undefined) {
    const draft = draftOf(cells, header, active);
    return "fault" in draft ? { row, ...draft } : { row, draft, warnings: draft.warnings };
  }
  const filled = filledCellsOf(cells, header, all, active);
  if ("fault" in filled) return { row, ...filled };
  return { row, change: { id: target, filled, lenient: header.lenient }, warnings: filled.warnings };
}

function withTags(read: ReadRow, tags: NewTags): ReadRow {
  if ("fault" in read) return read;
  const refused = tags.take("draft" in read ? read.draft.tags : read.change.filled.tags);
  if (refused === undefined) return read;
  const plain = `tags: the company can have at most ${limits.tagsPerCompany} tags`;
  return { row: read.row, fault: `${plain}, and ${quoted(refused)} would be one more`, plain };
}

/** Returns the keys by which the rows are matched. Throws BadFile if the file is not CSV, or lacks the column with the keys. */
export async function keysOfFile(
  bytes: Bytes,
  { encoding, mapping, by, rowLimit }: Pick<FileReading, "encoding" | "mapping"> & { by: MatchBy; rowLimit: number },
): Promise<FileKeys> {
  const fileKeys = new FileKeys(by);
  const { delimiter, rows } = await openCsv(decoded(bytes, encoding));
  const keyColumn = keyColumns[by];
  let header: Header | undefined;
  let count = 0;
  for await (const { row, cells } of rows) {
    if (header === undefined) header = readHeader(cells, { mapping, delimiter, keyColumn });
    // `checkFile` later reports that the file has too many rows.
    else if (++count > rowLimit) break;
    else if (!isTooLong(cells, header)) {
      const key = keyIn(by, cellsOf(cells, header)(keyColumn));
      if (key !== undefined && (by !== "id" || isId(key))) fileKeys.add(row, key);
    }
  }
  return fileKeys;
}

/** Maximum number of different faulty names for which `nearestIn` looks for a similar name. A hostile file may have a million of them. */
const SEARCHED_NAMES = 200;

function nearestIn({ statuses, users }: Dictionary): NonNullable<Names["nearest"]> {
  const known = {
    status: [...statuses.values()].filter(({ isActive }) => isActive).map(({ value }) => value),
    user: [...users.values()].filter(({ isActive }) => isActive).map(({ email }) => email),
  };
  const found = new Map<string, string | undefined>();
  return (kind, value) => {
    const key = `${kind} ${value}`;
    if (!found.has(key) && found.size < SEARCHED_NAMES) found.set(key, nearestOf(value, known[kind]));
    return found.get(key);
  };
}

/** Maps names in a file to ids. An active status or user is preferred to others with the same name. */
function namesOf({ statuses, users }: Dictionary, onlyActive: boolean): Names {
  const chosen = <T extends { isActive: boolean }>(entries: Iterable<T>): T[] =>
    [...entries]
      .filter(({ isActive }) => isActive || !onlyActive)
      .sort((a, b) => Number(a.isActive) - Number(b.isActive));
  return {
    statuses: new Map(chosen(statuses.values()).map(({ id, value }) => [folded(value), id])),
    users: new Map(chosen(users.values()).map(({ id, email }) => [folded(email), id])),
  };
}

/** Collects the tags of the file that the company does not have yet, up to the company's maximum number of tags. */
export class NewTags {
  readonly #known: Set<string>;
  readonly #added: Map<string, string>;

  /** `added`: tags that an earlier invocation has collected. */
  constructor({ tags }: Dictionary, added: readonly string[] = []) {
    this.#known = new Set([...tags.values()].map(({ value }) => folded(value)));
    this.#added = new Map(added.map((value) => [folded(value), value]));
  }

  get values(): string[] {
    return [...this.#added.values()];
  }

  /** Adds the new tags. If the company would then have too many tags, adds none, and returns the first tag that would be too many. */
  take(tags: readonly string[]): string | undefined {
    const fresh = tags.filter((value) => !this.#known.has(folded(value)) && !this.#added.has(folded(value)));
    const refused = fresh[Math.max(0, limits.tagsPerCompany - this.#known.size - this.#added.size)];
    if (refused === undefined) for (const value of fresh) this.#added.set(folded(value), value);
    return refused;
  }
}

/** A batch ends at this number of rows, or of characters in its notes and custom fields, to limit memory. */
const BATCH_ROWS = 2_048;
const BATCH_TEXT = 1_000_000;

export interface Batch {
  readonly drafts: readonly Draft[];
  readonly changes: readonly ChangedRow[];
  readonly faults: readonly FaultyRow[];
  readonly warnings: number;
  readonly row: number;
  /** Known only at the end of the file. */
  readonly ignoredColumns?: readonly string[];
}

export const isLast = ({ ignoredColumns }: Batch): boolean => ignoredColumns !== undefined;

/** Only the content of the file decides where a batch ends, so that a repeated invocation makes the same batches. The last may be empty. */
export async function* batchesOf(bytes: Bytes, reading: Reading): AsyncGenerator<Batch, void, undefined> {
  const rows = readRows(bytes, reading);
  let [batch, text, after]: [ReadRow[], number, number] = [[], 0, reading.after];
  for (let next = await rows.next(); ; next = await rows.next()) {
    if (next.done === true) return yield { ...batchOf(batch, after), ignoredColumns: next.value };
    batch.push(next.value);
    text += textOf(next.value);
    if (batch.length < BATCH_ROWS && text < BATCH_TEXT) continue;
    yield batchOf(batch, after);
    [batch, text, after] = [[], 0, next.value.row];
  }
}

/** `after` is the last row of the batch before this one. */
const batchOf = (rows: readonly ReadRow[], after: number): Batch => ({
  drafts: rows.flatMap((read) => ("draft" in read ? [read.draft] : [])),
  changes: rows.filter((read) => "change" in read),
  faults: rows.filter((read) => "fault" in read),
  warnings: rows.reduce((sum, read) => sum + ("fault" in read ? 0 : read.warnings), 0),
  row: rows.at(-1)?.row ?? after,
});

function textOf(read: ReadRow): number {
  if ("fault" in read) return 0;
  const { note, customFieldData } = "change" in read ? read.change.filled : read.draft;
  return (note?.length ?? 0) + (customFieldData === null ? 0 : JSON.stringify(customFieldData).length);
}

/**
 * Returns `done` plus the number of ids that the batch needs. The numbers of addresses and notes are rounded up to a multiple of 128,
 * because an item holds 128 of their ids. A batch that is written twice then overwrites only its own items.
 */
export function plus(done: Counts, { drafts }: Pick<Batch, "drafts">): Counts {
  const count = (has: (draft: Draft) => boolean): number => drafts.filter(has).length;
  return {
    prospect: done.prospect + drafts.length,
    address: done.address + wholeBlocks(count(({ address }) => address !== null)),
    note: done.note + wholeBlocks(count(({ note }) => note !== null)),
    change: done.change + count(({ statusId }) => statusId !== null),
  };
}

const wholeBlocks = (ids: number): number => Math.ceil(ids / IDS_PER_PARTITION) * IDS_PER_PARTITION;
