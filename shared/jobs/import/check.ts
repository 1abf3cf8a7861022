/** Checks an uploaded file before any row is written: finds every error, counts the records, and writes the error report. */
import * as z from "zod/mini";
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import type { JobContext } from "#shared/context.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import type { ImportLease } from "#shared/jobs/import/lease.ts";
import type { ImportNames } from "#shared/jobs/import/names.ts";
import { batchesOf, NewTags, noFindings, plus, readRows } from "#shared/jobs/import/read-file.ts";
import { beginningOf, type Progress, RowFault } from "#shared/jobs/import/schema.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import * as limits from "#shared/limits.ts";
import { type Encoding, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile } from "#shared/prospects/csv/format.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/**
 * Returns the encoding of the uploaded file. The first invocation detects it and stores it in the job's row. Throws BadFile for a workbook
 * of a spreadsheet program.
 */
export async function fileEncoding({ objects }: JobContext, lease: ImportLease): Promise<Encoding> {
  const { companyId, id, encoding: known } = lease.stored;
  if (known !== undefined) return known;
  const bytes = objects.read(importKeys.uploaded(companyId, id), lease.job.etag ?? "");
  const encoding = await encodingOf(renewing(lease, bytes));
  await lease.save({ encoding });
  return encoding;
}

/** The interval at which the lease is renewed. The lease expires after two minutes. */
const LEASE_RENEWAL_MS = 60_000;

/** Renews the lease while the bytes are read, because a large file takes longer than a lease on a slow connection. */
async function* renewing(lease: ImportLease, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    await lease.heartbeat({}, LEASE_RENEWAL_MS);
    yield chunk;
  }
}

/** Checks the file. Returns false if the invocation runs out of time before the end of the file. Throws BadFile. */
export async function checkFile(
  { objects }: JobContext,
  lease: ImportLease,
  { dictionary }: ImportNames,
  encoding: Encoding,
): Promise<boolean> {
  const { companyId, id } = lease.stored;
  const { job } = lease;
  const tags = new NewTags(dictionary, job.progress.newTags);
  const report = await ErrorReport.open(objects, { companyId, id }, job.progress.report);
  const shown = unpacked(z.array(RowFault), lease.stored.errors);
  // Start from the counts of the checkpoint. The counts that clients see may be higher, because heartbeats update them between checkpoints.
  let { done, row, skipped } = job.progress;
  let processed = done.prospect + skipped;
  const bytes = objects.read(importKeys.uploaded(companyId, id), job.etag ?? "");
  const findings = noFindings();
  const reading = { encoding, dictionary, tags, mapping: lease.mapping, after: row, findings };
  const counts = () => ({ processed, skipped, errors: packed(shown) });
  for await (const batch of batchesOf(readRows(bytes, reading))) {
    done = plus(done, batch);
    row = batch.row;
    processed += batch.drafts.length + batch.faults.length;
    skipped += batch.faults.length;
    if (processed > limits.jobRows) throw new BadFile(`The file may hold at most ${limits.jobRows} rows.`);
    shown.push(...batch.faults.slice(0, limits.jobErrors - shown.length));
    await report.add(batch.faults);
    if (lease.isLate()) {
      const paused = await report.pause(row);
      const progress = { ...job.progress, done, row, skipped, newTags: tags.values, report: paused };
      await lease.release({ ...counts(), job: { ...job, progress } });
      return false;
    }
    await lease.heartbeat({ processed, skipped });
  }
  const hasReport = skipped > shown.length;
  if (hasReport) await report.finish();
  const progress = { ...beginningOf("write"), newTags: tags.values };
  const checked = { ...job, total: done, hasReport, runs: 0, progress };
  const ignoredColumns = [...findings.ignoredColumns];
  await lease.save({ ...counts(), imported: done.prospect, ignoredColumns, job: checked });
  return true;
}

/** A part of the report is uploaded at this size. S3 requires at least 5 MB for each part except the last one. */
const PART_BYTES = 6_000_000;

type ReportState = NonNullable<Progress["report"]>;

const headers = {
  contentType: "text/csv; charset=utf-8",
  contentDisposition: 'attachment; filename="errors.csv"',
};

/** A CSV file of all errors. It is uploaded in parts, because the errors of a large file may not fit into memory. */
class ErrorReport {
  readonly #objects: Objects;
  readonly #job: JobId;
  readonly #key: string;
  #upload: string | null;
  readonly #tags: string[];
  #pending: string[] = [];
  #bytes = 0;

  private constructor(objects: Objects, job: JobId, { upload, tags }: Pick<ReportState, "upload" | "tags">) {
    this.#objects = objects;
    this.#job = job;
    this.#key = importKeys.report(job.companyId, job.id);
    this.#upload = upload;
    this.#tags = [...tags];
  }

  /** Begins a report, or continues the report that `pause` stored in an earlier invocation. */
  static async open(objects: Objects, job: JobId, state: ReportState | null): Promise<ErrorReport> {
    const report = new ErrorReport(objects, job, state ?? { upload: null, tags: [] });
    if (state === null) report.#push(csvText([["row", "message"]]));
    else report.#push(Buffer.from(await objects.get(state.rest)).toString("utf8"));
    return report;
  }

  async add(faults: readonly RowFault[]): Promise<void> {
    if (faults.length === 0) return;
    this.#push(csvText(faults.map(({ row, message }) => [String(row), message])));
    if (this.#bytes >= PART_BYTES) await this.#putPart();
  }

  /** Stores the lines that are not uploaded yet, so that another invocation can continue the report after this row. */
  async pause(row: number): Promise<ReportState> {
    const { companyId, id } = this.#job;
    const rest = importKeys.faults(companyId, id, row);
    await this.#objects.put(rest, this.#takePending(), "text/csv");
    return { upload: this.#upload, tags: this.#tags, rest };
  }

  async finish(): Promise<void> {
    if (this.#upload === null) {
      await this.#objects.put(this.#key, this.#takePending(), headers.contentType);
      return;
    }
    await this.#putPart();
    await this.#objects.completeParts(this.#key, this.#upload, this.#tags);
  }

  #push(text: string): void {
    this.#pending.push(text);
    this.#bytes += Buffer.byteLength(text);
  }

  #takePending(): Buffer {
    const bytes = Buffer.from(this.#pending.join(""));
    this.#pending = [];
    this.#bytes = 0;
    return bytes;
  }

  async #putPart(): Promise<void> {
    this.#upload ??= await this.#objects.beginParts(this.#key, headers);
    this.#tags.push(await this.#objects.putPart(this.#key, this.#upload, this.#tags.length + 1, this.#takePending()));
  }
}
