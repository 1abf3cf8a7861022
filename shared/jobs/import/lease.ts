/** An import by an upload, held by the run that works on it. */

import type { JobContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { nothing, type Progress, StoredImport, type StoredJob } from "#shared/jobs/import/schema.ts";
import { Held } from "#shared/jobs/lease.ts";
import { Mapping } from "#shared/prospects/csv/mapping.ts";

export class HeldImport extends Held<StoredImport> {
  constructor(context: JobContext, stored: StoredImport, remainingMs: () => number) {
    const key = keys.import(stored.companyId, stored.id);
    super(context, key, (item) => StoredImport.parse(item), stored, remainingMs);
  }

  get job(): StoredJob {
    const { job } = this.stored;
    if (job === undefined) throw new Error("an import without an upload is no job");
    return job;
  }

  get mapping(): Mapping | undefined {
    return this.job.mapping === null ? undefined : Mapping.parse(this.job.mapping);
  }

  /** The beginning of this step. */
  begun(step: Progress["step"]): Progress {
    return { step, row: 0, done: nothing, skipped: 0, stretches: 0, report: null, newTags: [] };
  }
}
