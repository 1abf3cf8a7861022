/** A whole file in memory -> its accepted rows and its errors; what is too large or no CSV is refused before anything is written. */
import { folded } from "#shared/caseless.ts";
import type { Dictionary } from "#shared/companies/dictionary.ts";
import { BadFile } from "#shared/csv/bad-file.ts";
import { decoded } from "#shared/csv/decode.ts";
import { type Draft, draftOf, type Names } from "#shared/csv/draft.ts";
import { type Header, readHeader } from "#shared/csv/header.ts";
import { csvRows } from "#shared/csv/read.ts";
import { ApiError } from "#shared/http/problem.ts";
import type { RowFault } from "#shared/imports/schema.ts";
import { limits } from "#shared/limits.ts";

export interface ReadFile {
  readonly drafts: readonly Draft[];
  readonly errors: readonly RowFault[];
  /** Tags that the company does not have yet, each once, as they are first written. */
  readonly newTags: readonly string[];
}

/** Throws payload_too_large beyond the limit of rows, and validation_failed for what is no CSV. */
export async function readFile(bytes: Uint8Array, dictionary: Dictionary): Promise<ReadFile> {
  try {
    return await read(bytes, dictionary);
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    const faults = [{ pointer: "/file", code: "invalid_file", message: error.message }];
    throw new ApiError("validation_failed", error.message, { faults });
  }
}

async function read(bytes: Uint8Array, dictionary: Dictionary): Promise<ReadFile> {
  const names = namesIn(dictionary);
  const tags = new NewTags(dictionary);
  const drafts: Draft[] = [];
  const errors: RowFault[] = [];
  let header: Header | undefined;
  for await (const { row, cells } of csvRows(decoded([bytes]))) {
    if (header === undefined) {
      header = readHeader(cells);
      continue;
    }
    if (drafts.length + errors.length === limits.importRows) throw tooManyRows();
    const draft = draftOf(cells, header, names);
    if ("fault" in draft) errors.push({ row, message: draft.fault });
    else if (!tags.take(draft.tags))
      errors.push({ row, message: `tags: more than ${limits.tagsPerCompany} in the company` });
    else drafts.push(draft);
  }
  if (header === undefined) throw new BadFile("The file is empty.");
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
class NewTags {
  readonly #known: Set<string>;
  readonly #made = new Map<string, string>();

  constructor({ tags }: Dictionary) {
    this.#known = new Set([...tags.values()].map(({ value }) => folded(value)));
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
