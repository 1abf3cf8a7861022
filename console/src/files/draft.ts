/** The draft of an import: the file that the user has chosen, and its options. */
import * as limits from "../../../shared/limits.ts";
import type { Draft, NewDraft } from "../drafts/store.ts";
import type { ImportOptions, ImportOutcome } from "./import-request.ts";

/** Maximum bytes of a file that the browser keeps in a draft. */
export const KEPT_BYTES = 1_000_000;
export const RECORD = "import";
/** Maximum characters of the text of a draft. The JSON of all columns, with their samples and a mapping, is shorter. */
export const LIMIT = 250_000;

type Columns = NonNullable<ImportOutcome["columns"]>;

/** What the text of a draft contains. If the file is larger than `KEPT_BYTES`, the draft has only this text. */
interface Kept {
  readonly name: string;
  readonly options: ImportOptions;
  /** The columns that the service does not read without a mapping. */
  readonly columns: Columns;
}

export type Chosen = Omit<Kept, "name"> & { readonly file: File };

export function draftOf({ file, options, columns }: Chosen): NewDraft {
  const kept: Kept = { name: file.name, options, columns };
  return {
    record: RECORD,
    field: "file",
    text: JSON.stringify(kept),
    file: file.size <= KEPT_BYTES ? file : undefined,
    title: `Import of ${file.name}`,
    path: "/files",
  };
}

export const keptIn = ({ text }: Draft): Kept => JSON.parse(text);

/**
 * Adds the columns that the dry run has not read to `columns`. Columns of earlier dry runs stay with their samples, because the service
 * returns samples only if it knows no column of the file. `ignoredColumns` has shortened headers, and "" for columns without a header.
 */
export function withUnread(chosen: Chosen, { columns = chosen.columns, ignoredColumns }: ImportOutcome): Chosen {
  const known = new Set(["", ...columns.map(({ header }) => header.slice(0, limits.ignoredColumn))]);
  const added = ignoredColumns.filter((header) => !known.has(header)).map((header) => ({ header, samples: [] }));
  return { ...chosen, columns: [...columns, ...added] };
}
