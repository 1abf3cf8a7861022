/** What a user asks of an import, and what the service answers. */
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

/** What an import did, or a trial would do. */
export type ImportOutcome = Pick<
  FileResult,
  "id" | "dryRun" | "imported" | "updated" | "skipped" | "ignoredColumns" | "errors"
> & {
  /** A file with all faults, if there are more than the first ones. */
  readonly errorReport?: string | undefined;
};
