/** The bytes of a file -> what becomes of each of its rows, while they come. */
import { folded } from "#shared/caseless.ts";
import { ApiError } from "#shared/errors.ts";
import type { RowFault } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";
import { BadFile } from "#shared/prospects/csv/bad-file.ts";
import { decoded } from "#shared/prospects/csv/decode.ts";
import { type Draft, draftOf, type Names } from "#shared/prospects/csv/draft.ts";
import { type Header, readHeader } from "#shared/prospects/csv/header.ts";
import type { Mapping } from "#shared/prospects/csv/mapping.ts";
import { csvRows } from "#shared/prospects/csv/read.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";

/** Each row is one of both. */
export type ReadRow =
  | { readonly row: number; readonly draft: Draft }
  | { readonly row: number; readonly fault: string };

export interface Reading {
  readonly dictionary: Dictionary;
  readonly tags: NewTags;
  readonly mapping?: Mapping | undefined;
  /** Rows up to this one were read before. */
  readonly after?: number;
}

/** Data rows in their order. Throws BadFile for what is no CSV, some of it after rows that were. */
export async function* readRows(
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { dictionary, tags, mapping, after = 0 }: Reading,
): AsyncGenerator<ReadRow, void, undefined> {
  const names = namesIn(dictionary);
  let header: Header | undefined;
  for await (const { row, cells } of csvRows(decoded(bytes))) {
    if (header === undefined) header = readHeader(cells, mapping);
    else if (row > after) {
      const draft = draftOf(cells, header, names);
      if ("fault" in draft) yield { row, fault: draft.fault };
      else if (tags.take(draft.tags)) yield { row, draft };
      else yield { row, fault: `tags: more than ${limits.tagsPerCompany} in the company` };
    }
  }
  if (header === undefined) throw new BadFile("The file is empty.");
}

export interface ReadFile {
  readonly drafts: readonly Draft[];
  readonly errors: readonly RowFault[];
  /** Tags that the company does not have yet, each once, as they are first written. */
  readonly newTags: readonly string[];
}

/** A whole file in memory. Throws payload_too_large beyond the limit of rows, and validation_failed for what is no CSV. */
export async function readFile(bytes: Uint8Array, dictionary: Dictionary, mapping?: Mapping): Promise<ReadFile> {
  const tags = new NewTags(dictionary);
  const drafts: Draft[] = [];
  const errors: RowFault[] = [];
  try {
    for await (const read of readRows([bytes], { dictionary, tags, mapping })) {
      if (drafts.length + errors.length === limits.importRows) throw tooManyRows();
      if ("draft" in read) drafts.push(read.draft);
      else errors.push({ row: read.row, message: read.fault });
    }
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    const faults = [{ pointer: "/file", code: "invalid_file", message: error.message }];
    throw new ApiError("validation_failed", error.message, { faults });
  }
  return { drafts, errors, newTags: tags.values };
}

/** What is active can be named. */
function namesIn({ statuses, users }: Dictionary): Names {
  const active = <T extends { isActive: boolean }>(entries: Iterable<T>): T[] =>
    [...entries].filter(({ isActive }) => isActive);
  return {
    statuses: new Map(active(statuses.values()).map(({ id, value }) => [folded(value), id])),
    users: new Map(active(users.values()).map(({ id, email }) => [folded(email), id])),
  };
}

/** Keeps the company within its number of tags. */
export class NewTags {
  readonly #known: Set<string>;
  readonly #made: Map<string, string>;

  /** `made` were taken before. */
  constructor({ tags }: Dictionary, made: readonly string[] = []) {
    this.#known = new Set([...tags.values()].map(({ value }) => folded(value)));
    this.#made = new Map(made.map((value) => [folded(value), value]));
  }

  get values(): string[] {
    return [...this.#made.values()];
  }

  /** False: there is no room for all of them, and none is taken. */
  take(tags: readonly string[]): boolean {
    const fresh = tags.filter((value) => !this.#known.has(folded(value)) && !this.#made.has(folded(value)));
    if (fresh.length > 0 && this.#known.size + this.#made.size + fresh.length > limits.tagsPerCompany) return false;
    for (const value of fresh) this.#made.set(folded(value), value);
    return true;
  }
}

const tooManyRows = (): ApiError =>
  new ApiError(
    "payload_too_large",
    `The file may hold at most ${limits.importRows} rows. For larger ones make an import job: POST /api/prospects/imports.`,
  );
