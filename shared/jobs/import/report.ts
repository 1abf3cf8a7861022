/** The report of an import's errors as CSV in the bucket: written in parts, so that there may be any number of them. */

import type { Objects } from "#shared/aws/objects.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import type { Progress, RowFault } from "#shared/jobs/import/schema.ts";
import { csvText } from "#shared/prospects/csv/write.ts";

/** S3 wants 5 MB at least. */
const PART_BYTES = 6_000_000;

type State = NonNullable<Progress["report"]>;

const header = ["row", "message"];
const headers = {
  contentType: "text/csv; charset=utf-8",
  contentDisposition: 'attachment; filename="errors.csv"',
};

export class Report {
  readonly #objects: Objects;
  readonly #place: { readonly companyId: number; readonly id: number };
  readonly #key: string;
  #upload: string | null;
  readonly #tags: string[];
  /** What is not in a part yet. */
  #waiting: string[] = [];
  #bytes = 0;

  private constructor(
    objects: Objects,
    place: { readonly companyId: number; readonly id: number },
    { upload, tags }: Pick<State, "upload" | "tags">,
  ) {
    this.#objects = objects;
    this.#place = place;
    this.#key = fileKeys.report(place.companyId, place.id);
    this.#upload = upload;
    this.#tags = [...tags];
  }

  /** Goes on where `state` says. */
  static async open(
    objects: Objects,
    place: { readonly companyId: number; readonly id: number },
    state: State | null,
  ): Promise<Report> {
    const report = new Report(objects, place, state ?? { upload: null, tags: [] });
    if (state === null) report.#push(csvText([header]));
    else report.#push(Buffer.from(await objects.get(state.rest)).toString("utf8"));
    return report;
  }

  async add(faults: readonly RowFault[]): Promise<void> {
    if (faults.length === 0) return;
    this.#push(csvText(faults.map(({ row, message }) => [String(row), message])));
    if (this.#bytes >= PART_BYTES) await this.#putPart();
  }

  /** So far; for another run to go on after this row. */
  async pause(row: number): Promise<State> {
    const { companyId, id } = this.#place;
    const rest = fileKeys.faults(companyId, id, row);
    await this.#objects.put(rest, this.#taken(), "text/csv");
    return { upload: this.#upload, tags: this.#tags, rest };
  }

  async finish(): Promise<void> {
    if (this.#upload === null) {
      await this.#objects.put(this.#key, this.#taken(), headers.contentType);
      return;
    }
    await this.#putPart();
    await this.#objects.completeParts(this.#key, this.#upload, this.#tags);
  }

  #push(text: string): void {
    this.#waiting.push(text);
    this.#bytes += Buffer.byteLength(text);
  }

  #taken(): Buffer {
    const bytes = Buffer.from(this.#waiting.join(""));
    this.#waiting = [];
    this.#bytes = 0;
    return bytes;
  }

  async #putPart(): Promise<void> {
    this.#upload ??= await this.#objects.beginParts(this.#key, headers);
    this.#tags.push(await this.#objects.putPart(this.#key, this.#upload, this.#tags.length + 1, this.#taken()));
  }
}
