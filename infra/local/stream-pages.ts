/** Reads streams for all their event sources: what one reads or has just read is the others' too, without a call, parsed once. */
import * as z from "zod/mini";
import type { AwsCall } from "./aws-json.ts";

const RecordSchema = z.looseObject({
  eventName: z.string(),
  dynamodb: z.looseObject({ SequenceNumber: z.string(), ApproximateCreationDateTime: z.number() }),
});
const Page = z.object({ Records: z.array(RecordSchema), NextShardIterator: z.nullish(z.string()) });
export type StreamRecord = z.infer<typeof RecordSchema>;
export type StreamPage = z.infer<typeof Page>;

/** A stream answers no more at once. */
const PAGE_RECORDS = 1_000;
/** Of a stream that nobody is far behind. */
const KEPT_PAGES = 16;

/** By iterator: the server names equal places alike. Nothing is gained, and nothing lost, with one that does not. */
export class StreamPages {
  readonly #streams: AwsCall;
  readonly #pages = new Map<string, Promise<StreamPage>>();

  constructor(streams: AwsCall) {
    this.#streams = streams;
  }

  /** In the order of the stream. */
  async read(iterator: string): Promise<StreamPage> {
    const known = await this.#pages.get(iterator)?.catch(() => undefined);
    if (known !== undefined) return known;
    const reading = this.#read(iterator);
    this.#pages.delete(iterator);
    this.#pages.set(iterator, reading);
    const [oldest] = this.#pages.keys();
    if (oldest !== undefined && this.#pages.size > KEPT_PAGES) this.#pages.delete(oldest);
    const forget = (): void => {
      if (this.#pages.get(iterator) === reading) this.#pages.delete(iterator);
    };
    const page = await reading.catch((error: unknown) => {
      forget();
      throw error;
    });
    // The stream's end: there may be more the next time.
    if (page.Records.length === 0) forget();
    return page;
  }

  async #read(ShardIterator: string): Promise<StreamPage> {
    return z.parse(Page, await this.#streams("GetRecords", { ShardIterator, Limit: PAGE_RECORDS }));
  }
}
