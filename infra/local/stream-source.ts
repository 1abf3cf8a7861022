/** An event source on a table's stream: polls its shards in order and hands the records to a function in batches. */
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { type AwsCall, AwsError } from "./aws-json.ts";
import { messageOf } from "./error.ts";
import type { LocalFunction } from "./function.ts";
import { functionArn, REGION } from "./names.ts";
import type { Positions } from "./positions.ts";
import type { RunningSource } from "./sources.ts";
import type { Stack } from "./stack.ts";
import { type GivenUp, processBatch } from "./stream-batch.ts";
import { type Batch, batchesOf } from "./stream-batches.ts";
import type { StreamPage, StreamPages, StreamRecord, Told } from "./stream-pages.ts";

export interface StreamSource {
  readonly mapping: Stack["eventSources"][number];
  readonly target: LocalFunction;
  readonly streams: AwsCall;
  /** By the filter of the mapping. */
  readonly isWanted: (record: StreamRecord) => boolean;
  /** Shared with the other sources of the stream. */
  readonly pages: StreamPages;
  /** The server's own ARN of the stream. */
  readonly streamArn: string;
  readonly positions: Positions;
  /** Sends to the on-failure destination, if there is one. */
  readonly onFailure: (body: object) => Promise<void>;
  readonly log: (text: string) => void;
}

/** Between looks at a stream without news: short while something goes on, longer when nothing has for a while. */
const POLL_BUSY_MS = 50;
const POLL_QUIET_MS = 250;
const QUIET_AFTER_MS = 10_000;
/** Between two looks at least, however much goes on: under load there is news all the time, and it comes in larger batches. */
const POLL_GAP_MS = 20;
/** Lambda's own pause between repetitions grows too; people who wait for a test are less patient. */
const PAUSE_MS = { first: 100, longest: 1_000 } as const;
const DEFAULT_BATCH_SIZE = 100;
/** Position of a shard that holds no more and gets no more. */
const CLOSED = "closed";

const Shards = z.object({ StreamDescription: z.object({ Shards: z.array(z.object({ ShardId: z.string() })) }) });
const Iterator = z.object({ ShardIterator: z.string() });
export function startStreamSource(source: StreamSource): RunningSource {
  const loop = new Loop(source);
  const running = loop.run();
  return {
    kick: () => loop.kick(),
    async stop() {
      loop.stop();
      await running;
    },
  };
}

class Loop {
  readonly #source: StreamSource;
  readonly #stopping = new AbortController();
  readonly #iterators = new Map<string, string>();
  readonly #batchSize: number;
  #shards: string[] = [];
  #kicked = Promise.withResolvers<void>();
  #activeAt = Date.now();

  constructor(source: StreamSource) {
    this.#source = source;
    this.#batchSize = source.mapping.BatchSize ?? DEFAULT_BATCH_SIZE;
  }

  kick(): void {
    this.#activeAt = Date.now();
    this.#kicked.resolve();
  }

  stop(): void {
    this.#stopping.abort();
    this.#kicked.resolve();
  }

  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#kicked = Promise.withResolvers();
      try {
        const records = await this.#readShards();
        if (records > 0) this.#activeAt = Date.now();
        else await this.#idle();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#iterators.clear();
        this.#source.log(`${this.#source.mapping.id}: the stream cannot be read: ${messageOf(error)}\n`);
        await this.#idle();
      }
    }
  }

  async #idle(): Promise<void> {
    const quiet = Date.now() - this.#activeAt > QUIET_AFTER_MS;
    const timer = setTimeout(this.#kicked.resolve, quiet ? POLL_QUIET_MS : POLL_BUSY_MS);
    await Promise.all([this.#kicked.promise, wait(POLL_GAP_MS)]);
    clearTimeout(timer);
  }

  /** Shards in the order in which they came to be: a record and its successor are never swapped. */
  async #readShards(): Promise<number> {
    if (this.#shards.length === 0) this.#shards = await this.#listShards();
    const isWanted = ({ record }: Told): boolean => record !== undefined && this.#source.isWanted(record);
    let count = 0;
    for (const shard of this.#shards) {
      if (this.#source.positions.get(this.#key(shard)) === CLOSED) continue;
      const page = await this.#readPage(shard);
      count += page.told.length;
      for (const batch of batchesOf(page.told, isWanted, this.#batchSize)) await this.#process(shard, batch);
      if (page.next !== undefined) this.#iterators.set(shard, page.next);
      else await this.#close(shard);
    }
    return count;
  }

  async #close(shard: string): Promise<void> {
    await this.#source.positions.set(this.#key(shard), CLOSED);
    this.#shards = [];
  }

  async #listShards(): Promise<string[]> {
    const answer = await this.#source.streams("DescribeStream", { StreamArn: this.#source.streamArn });
    return z.parse(Shards, answer).StreamDescription.Shards.map(({ ShardId }) => ShardId);
  }

  async #readPage(shard: string): Promise<StreamPage> {
    return this.#source.pages.read(this.#iterators.get(shard) ?? (await this.#iterator(shard)));
  }

  /** After the last record that is done with; from the start where that one has left the stream. */
  async #iterator(shard: string): Promise<string> {
    const { streams, streamArn, positions } = this.#source;
    const position = positions.get(this.#key(shard));
    const shardOf = { StreamArn: streamArn, ShardId: shard };
    const start = { ...shardOf, ShardIteratorType: "TRIM_HORIZON" };
    if (position === undefined) return z.parse(Iterator, await streams("GetShardIterator", start)).ShardIterator;
    try {
      const after = { ...shardOf, ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber: position };
      return z.parse(Iterator, await streams("GetShardIterator", after)).ShardIterator;
    } catch (error) {
      if (!(error instanceof AwsError) || error.code !== "TrimmedDataAccessException") throw error;
      return z.parse(Iterator, await streams("GetShardIterator", start)).ShardIterator;
    }
  }

  async #process(shard: string, batch: Batch<Told>): Promise<void> {
    const { mapping, target, positions } = this.#source;
    const wanted = batch.wanted.flatMap(({ record }) => record ?? []);
    const rules = {
      bisect: mapping.BisectBatchOnFunctionError,
      reportsFailures: mapping.FunctionResponseTypes.length > 0,
      maxRetries: mapping.MaximumRetryAttempts,
      maxAgeSeconds: mapping.MaximumRecordAgeInSeconds,
    };
    await processBatch(wanted, rules, {
      invoke: (part) => target.invoke({ Records: part.map((record) => this.#eventRecord(shard, record)) }),
      checkpoint: (sequenceNumber) => positions.set(this.#key(shard), sequenceNumber),
      giveUp: (part, reason, invocations) => this.#giveUp(shard, part, reason, invocations),
      assertRunning: () => this.#stopping.signal.throwIfAborted(),
      pause: (failures) => this.#pause(failures),
      now: Date.now,
    });
    if (batch.last !== batch.wanted.at(-1)) await positions.set(this.#key(shard), batch.last.sequenceNumber);
  }

  async #pause(failures: number): Promise<void> {
    const pauseMs = Math.min(PAUSE_MS.first * 2 ** (failures - 1), PAUSE_MS.longest);
    await wait(pauseMs, undefined, { signal: this.#stopping.signal });
  }

  /** The record as Lambda passes it on: the server's own names of places replaced by the template's. */
  #eventRecord(shard: string, record: StreamRecord): object {
    const { mapping } = this.#source;
    const identity = `${this.#source.streamArn}/${shard}/${record.dynamodb.SequenceNumber}`;
    return {
      ...record,
      eventID: createHash("md5").update(identity).digest("hex"),
      awsRegion: REGION,
      eventSourceARN: mapping.EventSourceArn,
    };
  }

  /** Positions only, as Lambda sends them: the records themselves are still in the stream. */
  async #giveUp(shard: string, records: readonly StreamRecord[], reason: GivenUp, invocations: number): Promise<void> {
    const { mapping, target, onFailure } = this.#source;
    const at = (index: number): string =>
      new Date((records.at(index)?.dynamodb.ApproximateCreationDateTime ?? 0) * 1000).toISOString();
    await onFailure({
      requestContext: {
        requestId: randomUUID(),
        functionArn: functionArn(target.spec.name),
        condition: reason,
        approximateInvokeCount: invocations,
      },
      responseContext: { statusCode: 200, executedVersion: "$LATEST", functionError: "Unhandled" },
      version: "1.0",
      timestamp: new Date().toISOString(),
      DDBStreamBatchInfo: {
        shardId: shard,
        startSequenceNumber: records[0]?.dynamodb.SequenceNumber,
        endSequenceNumber: records.at(-1)?.dynamodb.SequenceNumber,
        approximateArrivalOfFirstRecord: at(0),
        approximateArrivalOfLastRecord: at(-1),
        batchSize: records.length,
        streamArn: mapping.EventSourceArn,
      },
    });
  }

  #key(shard: string): string {
    return `${this.#source.mapping.id}/${shard}`;
  }
}
