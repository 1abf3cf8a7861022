/** Collects the errors in the rows of an imported file. */
import type { Objects } from "#shared/aws/s3.ts";
import type { JobId } from "#shared/aws/sqs.ts";
import { packed, unpacked } from "#shared/db/packed.ts";
import { FileGone } from "#shared/errors.ts";
import type { FaultyRow } from "#shared/jobs/import/read-file.ts";
import { type Progress, type RowFault, RowFaults, type StoredImport } from "#shared/jobs/import/stored.ts";
import { importKeys } from "#shared/jobs/s3-keys.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/** A part of the report is uploaded when it has this many bytes. S3 requires at least 5 MB for each part except the last one. */
const PART_BYTES = 6_000_000;

type ReportState = NonNullable<Progress["report"]>;

/**
 * Thrown if the parts of the report are gone: the bucket's lifecycle rule deletes an incomplete upload after a day, or an interrupted
 * invocation has completed the upload without saving this in the row of the import.
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

/** Maximum bytes of the different messages with faulty values in the row of the import. Different values compress badly. */
const VALUES_BYTES = 100_000;

/** Collects the first errors for the row of the import, and all errors for the report, which is uploaded in parts to save memory. */
export class ErrorReport {
  readonly #objects: Objects;
  readonly #job: JobId;
  readonly #key: string;
  readonly #most: number;
  readonly #shown: RowFault[];
  /** The different messages in `#shown` that quote faulty values. */
  readonly #messages = new Set<string>();
  #valueBytes = 0;
  #count: number;
  #upload: string | null;
  readonly #tags: string[];
  #pending: string[] = [];
  #bytes = 0;

  private constructor(objects: Objects, stored: StoredImport, most: number) {
    const { progress, errors } = stored;
    this.#objects = objects;
    this.#job = stored;
    this.#key = importKeys.report(stored);
    this.#most = most;
    this.#shown = progress.report === undefined ? [] : unpacked(RowFaults, errors);
    this.#count = progress.skipped;
    this.#upload = progress.report?.upload ?? null;
    this.#tags = [...(progress.report?.tags ?? [])];
  }

  /**
   * Begins a report, or continues it after the checkpoint of the import. The row of the import gets at most `most` errors. Throws
   * ReportLost, like `add` and `finish`, if earlier parts of the report are gone.
   */
  static async open(objects: Objects, stored: StoredImport, most: number): Promise<ErrorReport> {
    const report = new ErrorReport(objects, stored, most);
    const { report: state } = stored.progress;
    if (state === undefined) report.#push(csvText([["row", "message"]]));
    else report.#push(Buffer.from(await unlessLost(objects.get(state.rest))).toString("utf8"));
    return report;
  }

  get count(): number {
    return this.#count;
  }

  get shown(): Uint8Array<ArrayBuffer> {
    return packed(this.#shown);
  }

  async add(faults: readonly FaultyRow[]): Promise<void> {
    if (faults.length === 0) return;
    this.#count += faults.length;
    for (const fault of faults.slice(0, this.#most - this.#shown.length)) {
      this.#shown.push({ row: fault.row, message: this.#messageOf(fault) });
    }
    this.#push(csvText(faults.map(({ row, fault }) => [String(row), fault])));
    if (this.#bytes >= PART_BYTES) await this.#putPart();
  }

  /** Stores the lines that no part contains yet, so that another invocation can continue after `row`. */
  async checkpoint(row: number): Promise<ReportState> {
    const rest = importKeys.faults(this.#job, row);
    await this.#objects.put(rest, Buffer.from(this.#pending.join("")), "text/csv");
    return { upload: this.#upload, tags: [...this.#tags], rest };
  }

  /** Returns false if the row of the import contains all errors. There is then no report. */
  async finish(): Promise<boolean> {
    if (this.#count <= this.#shown.length) return false;
    if (this.#upload === null) {
      await this.#objects.put(this.#key, this.#takePending(), headers.contentType);
    } else {
      await this.#putPart();
      await unlessLost(this.#objects.completeParts(this.#key, this.#upload, this.#tags));
    }
    return true;
  }

  /** Leaves out the faulty values if the different messages with values would exceed `VALUES_BYTES`. */
  #messageOf({ fault, plain = fault }: FaultyRow): string {
    if (this.#messages.has(fault) || fault === plain) return fault;
    this.#valueBytes += Buffer.byteLength(fault);
    if (this.#valueBytes > VALUES_BYTES) return plain;
    this.#messages.add(fault);
    return fault;
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
