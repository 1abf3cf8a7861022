/** Handles the messages of the queue of bulk jobs. A message starts a job, or continues a job that an earlier invocation did not finish. */
import { changeKind } from "#shared/jobs/bulk/change.ts";
import { BulkMessage, bulkJob } from "#shared/jobs/bulk/run.ts";
import { undoKind } from "#shared/jobs/bulk/undo.ts";
import { jobConsumer } from "#shared/jobs/consumer.ts";
import { importUndoKind } from "#shared/jobs/import/undo.ts";
import { territoryRunKind } from "#shared/jobs/territory-runs/kind.ts";

const kinds = {
  prospect_bulk: changeKind,
  territory_run: territoryRunKind,
  undo: undoKind,
  import_undo: importUndoKind,
};

export const handler = jobConsumer(bulkJob(kinds), BulkMessage);
