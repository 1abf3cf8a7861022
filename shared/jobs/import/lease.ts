/** The lease on an import job, with getters for the attributes of an import. */
import type { JobContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { StoredImport, type StoredJob } from "#shared/jobs/import/stored.ts";
import { JobLease } from "#shared/jobs/lease.ts";
import { Mapping } from "#shared/prospects/csv/header.ts";

export class ImportLease extends JobLease<StoredImport> {
  constructor(context: JobContext, stored: StoredImport, remainingMs: () => number) {
    const key = keys.import(stored.companyId, stored.id);
    super(context, key, (item) => StoredImport.parse(item), stored, remainingMs);
  }

  get job(): StoredJob {
    const { job } = this.stored;
    if (job === undefined) throw new Error("an import within one request is no job");
    return job;
  }

  get mapping(): Mapping | undefined {
    return this.job.mapping === null ? undefined : Mapping.parse(this.job.mapping);
  }
}
