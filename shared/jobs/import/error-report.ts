/** The CSV file with all errors of an uploaded file. */
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { FileGone } from "#shared/errors.ts";
import type { Progress, RowFault } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/** S3 requires at least 5 MB for each part except the last one. */
const PART_BYTES = 6_000_000;

type ReportState = NonNullable<Progress["report"]>;

/**
 * Thrown if the parts of the report are gone: the bucket's lifecycle rule deletes an incomplete upload after a day, or an interrupted
 * invocation has completed the report without storing it.
 */
export class ReportLost extends Error {
  override readonly name = "ReportLost";
}

async function unlessLost<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof FileGone
      ? new ReportLost("the parts of the error report are gone", { cause: error })
      : error;
  }
}

const headers = {
  contentType: "text/csv; charset=utf-8",
  contentDisposition: 'attachment; filename="errors.csv"',
};

/** The report of all errors. It is uploaded in parts, because the errors of a large file may not fit into memory. */
export class ErrorReport {
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

  /** Begins a report, or continues from a `checkpoint`. Throws ReportLost, like `add` and `finish`, if earlier parts are gone. */
  static async open(objects: Objects, job: JobId, state: ReportState | null): Promise<ErrorReport> {
    const report = new ErrorReport(objects, job, state ?? { upload: null, tags: [] });
    if (state === null) report.#push(csvText([["row", "message"]]));
    else report.#push(Buffer.from(await unlessLost(objects.get(state.rest))).toString("utf8"));
    return report;
  }

  async add(faults: readonly RowFault[]): Promise<void> {
    if (faults.length === 0) return;
    this.#push(csvText(faults.map(({ row, message }) => [String(row), message])));
    if (this.#bytes >= PART_BYTES) await this.#putPart();
  }

  /** Stores the lines that no part contains yet, so that another invocation can continue after `row`. */
  async checkpoint(row: number): Promise<ReportState> {
    const { companyId, id } = this.#job;
    const rest = importKeys.faults(companyId, id, row);
    await this.#objects.put(rest, Buffer.from(this.#pending.join("")), "text/csv");
    return { upload: this.#upload, tags: [...this.#tags], rest };
  }

  async finish(): Promise<void> {
    if (this.#upload === null) {
      await this.#objects.put(this.#key, this.#takePending(), headers.contentType);
      return;
    }
    await this.#putPart();
    await unlessLost(this.#objects.completeParts(this.#key, this.#upload, this.#tags));
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
    const number = this.#tags.length + 1;
    this.#tags.push(await unlessLost(this.#objects.putPart(this.#key, this.#upload, number, this.#takePending())));
  }
}
