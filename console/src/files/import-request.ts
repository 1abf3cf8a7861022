/** The options of an import that a user chooses, and the result that the service returns. */
import type { FileResult, NewImport } from "canvassing-client/api";

export const MATCHES = ["id", "sourceId", "emailAddress"] as const;
export const ON_MATCH = ["update", "skip", "create"] as const;

export type Mapping = NonNullable<NewImport["mapping"]>;

export interface ImportOptions {
  readonly mapping: Mapping;
  readonly matchBy: (typeof MATCHES)[number] | undefined;
  readonly onMatch: (typeof ON_MATCH)[number];
}

export interface ImportRequest {
  readonly file: File;
  readonly options: ImportOptions;
  readonly dryRun: boolean;
}

/** The result of an import. The result of a dry run says what the import would do. */
export type ImportOutcome = Pick<
  FileResult,
  "id" | "dryRun" | "imported" | "updated" | "skipped" | "ignoredColumns" | "warnings" | "columns" | "errors"
> & {
  readonly encoding: FileResult["encoding"] | null;
  /** The URL of a file with all faults. It is present only if there are more faults than `errors` contains. */
  readonly errorReport?: string | undefined;
};
