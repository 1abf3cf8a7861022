/**
 * Reads the file of an import and turns each data row into a draft of a prospect or into a fault. Imports by upload and imports within one
 * request both use it.
 */
import { folded } from "#shared/caseless.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import type { Counts, RowFault } from "#shared/jobs/import/schema.ts";
import * as limits from "#shared/limits.ts";
import { type Draft, draftOf, type Names } from "#shared/prospects/csv/draft.ts";
import { type Bytes, decoded, type Encoding } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import {
  fillsUnnamed,
  type Header,
  isFilled,
  type Mapping,
  nothingFilled,
  readHeader,
} from "#shared/prospects/csv/header.ts";
import { openCsv } from "#shared/prospects/csv/read.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

type ReadRow = { readonly row: number; readonly draft: Draft } | { readonly row: number; readonly fault: string };

export interface Reading {
  readonly encoding: Encoding;
  readonly dictionary: Dictionary;
  readonly tags: NewTags;
  readonly mapping?: Mapping | undefined;
  /** Rows up to this number are skipped, because an earlier invocation has processed them. */
  readonly after?: number;
  readonly findings?: Findings;
}

/** What reading all rows has shown about the file. */
export interface Findings {
  /** The headers of the columns that the import does not read. An empty text stands for columns that have values but no header. */
  ignoredColumns: readonly string[];
  /** Whether any row has a name, phone, e-mail, address or coordinates. If none has, the file is probably of another kind. */
  isFilled: boolean;
}

export const noFindings = (): Findings => ({ ignoredColumns: [], isFilled: false });

/**
 * Yields the data rows in the order of the file. Throws BadFile at the first place where the file is not CSV, and at the end if no row has
 * a name, phone, e-mail, address or coordinates.
 */
export async function* readRows(
  bytes: Bytes,
  { encoding, dictionary, tags, mapping, after = 0, findings = noFindings() }: Reading,
): AsyncGenerator<ReadRow, void, undefined> {
  const names = activeNames(dictionary);
  const { delimiter, rows } = await openCsv(decoded(bytes, encoding));
  let header: Header | undefined;
  let last = 0;
  for await (const { row, cells } of rows) {
    if (header === undefined) {
      header = readHeader(cells, { mapping, delimiter });
      findings.ignoredColumns = header.ignored;
      continue;
    }
    last = row;
    findings.isFilled ||= isFilled(cells, header);
    if (!findings.ignoredColumns.includes("") && fillsUnnamed(cells, header)) {
      findings.ignoredColumns = [...findings.ignoredColumns, ""];
    }
    if (row > after) {
      const draft = draftOf(cells, header, names);
      if ("fault" in draft) yield { row, fault: draft.fault };
      else if (tags.take(draft.tags)) yield { row, draft };
      else yield { row, fault: `tags: the company can have at most ${limits.tagsPerCompany} tags` };
    }
  }
  if (header === undefined) throw new BadFile("The file is empty.");
  if (last > 0 && !findings.isFilled) throw nothingFilled();
}

function activeNames({ statuses, users }: Dictionary): Names {
  const active = <T extends { isActive: boolean }>(entries: Iterable<T>): T[] =>
    [...entries].filter(({ isActive }) => isActive);
  return {
    statuses: new Map(active(statuses.values()).map(({ id, value }) => [folded(value), id])),
    users: new Map(active(users.values()).map(({ id, email }) => [folded(email), id])),
  };
}

/** Collects the tags in the file that the company does not have yet, up to the company's limit. */
export class NewTags {
  readonly #known: Set<string>;
  readonly #added: Map<string, string>;

  /** `added` has the tags that an earlier invocation collected. */
  constructor({ tags }: Dictionary, added: readonly string[] = []) {
    this.#known = new Set([...tags.values()].map(({ value }) => folded(value)));
    this.#added = new Map(added.map((value) => [folded(value), value]));
  }

  get values(): string[] {
    return [...this.#added.values()];
  }

  /** Adds all of the tags, or none of them if that would exceed the company's limit. Returns whether they were added. */
  take(tags: readonly string[]): boolean {
    const fresh = tags.filter((value) => !this.#known.has(folded(value)) && !this.#added.has(folded(value)));
    if (fresh.length > 0 && this.#known.size + this.#added.size + fresh.length > limits.tagsPerCompany) return false;
    for (const value of fresh) this.#added.set(folded(value), value);
    return true;
  }
}

/** A batch ends at this many rows, or earlier at this many characters in its notes, which limits the memory for a batch. */
const BATCH_ROWS = 2_048;
const BATCH_TEXT = 1_000_000;

export interface Batch {
  readonly drafts: readonly Draft[];
  readonly faults: readonly RowFault[];
  readonly row: number;
}

/** Cuts the rows into batches. Where a batch ends depends only on the file, so that a repeated invocation produces the same batches. */
export async function* batchesOf(rows: AsyncIterable<ReadRow>): AsyncGenerator<Batch, void, undefined> {
  let drafts: Draft[] = [];
  let faults: RowFault[] = [];
  let text = 0;
  let last = 0;
  for await (const read of rows) {
    last = read.row;
    if ("fault" in read) faults.push({ row: read.row, message: read.fault });
    else {
      drafts.push(read.draft);
      text += read.draft.note?.length ?? 0;
    }
    if (drafts.length + faults.length < BATCH_ROWS && text < BATCH_TEXT) continue;
    yield { drafts, faults, row: last };
    [drafts, faults, text] = [[], [], 0];
  }
  if (drafts.length + faults.length > 0) yield { drafts, faults, row: last };
}

/**
 * Adds the records of the batch to the counts. Address ids and note ids are counted in whole blocks (128 ids), because the table stores one
 * item for each block. A batch that is written twice thus overwrites its own items only.
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
