/** Reads a whole CSV file with the code of the import, for tests of the values that an import reads. */
import { unpacked } from "#shared/db/packed.ts";
import { ErrorReport } from "#shared/jobs/import/error-report.ts";
import { batchesOf, NewTags } from "#shared/jobs/import/read-file.ts";
import { newImport, RowFaults } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import { encodingOf } from "#shared/prospects/csv/encoding.ts";
import type { Mapping } from "#shared/prospects/csv/header.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { memoryBucket } from "./faulty-jobs.ts";

const caller = { companyId: 1, userId: 2, role: "owner" as const, permissions: [] };

export async function readFile(bytes: Uint8Array, dictionary: Dictionary, mapping?: Mapping) {
  const encoding = await encodingOf([bytes]);
  const drafts: Draft[] = [];
  let warnings = 0;
  let ignoredColumns: readonly string[] = [];
  const report = await ErrorReport.open(memoryBucket(), newImport(caller, 1, 0, {}), limits.importRows);
  const reading = { encoding, dictionary, mapping, tags: new NewTags(dictionary), after: 0 };
  for await (const batch of batchesOf([bytes], reading)) {
    drafts.push(...batch.drafts);
    await report.add(batch.faults);
    warnings += batch.warnings;
    ignoredColumns = batch.ignoredColumns ?? [];
  }
  return { drafts, faults: unpacked(RowFaults, report.shown), warnings, ignoredColumns };
}
