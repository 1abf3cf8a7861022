/**
 * Implements the event source of a table's stream. It polls the shards (parts) of the stream in order, passes the records to a function,
 * and stores the position up to which the records are processed.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetShardIteratorCommand,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";
import * as z from "zod/mini";
import { codeOf, messageOf } from "../command/error.ts";
import type { RunningSource } from "./event-source.ts";
import type { LocalFunction } from "./function.ts";
import { functionArn, REGION } from "./names.ts";
import type { Stack } from "./stack.ts";
import { type Batch, batchesOf, type GivenUp, processBatch } from "./stream-batch.ts";
import type { StreamEntry, StreamPage, StreamPages, StreamRecord } from "./stream-pages.ts";

export interface StreamSource {
  readonly mapping: Stack["eventSources"][number];
  readonly target: LocalFunction;
  readonly streams: DynamoDBStreamsClient;
  /** Returns true if the filter of the event source accepts the record. */
  readonly isWanted: (record: StreamRecord) => boolean;
  readonly pages: StreamPages;
  readonly streamArn: string;
  readonly positions: Positions;
  /** Sends a message to the on-failure destination. Does nothing if the event source has no such destination. */
  readonly onFailure: (body: object) => Promise<void>;
  readonly log: (text: string) => void;
}

/**
 * Maximum wait in milliseconds after a poll that found no records. The wait ends earlier (`kick`) when an invocation of any function ends,
 * because that function may have written rows.
 */
const POLL_MS = 250;
/**
 * Minimum wait in milliseconds after a poll that found no records. It limits the number of polls, because a poll uses as much processor
 * time as a small request. It also makes batches larger, because more records arrive during the wait.
 */
const POLL_GAP_MS = 50;
/**
 * The wait before the first retry, and the longest wait before a later retry, in milliseconds. The wait doubles after each failure. Lambda
 * waits longer, but the tests would then take longer.
 */
const RETRY_MS = { first: 100, longest: 1_000 } as const;
const DEFAULT_BATCH_SIZE = 100;
/** The stored position of a shard whose records are all processed and that gets no more records. */
const CLOSED = "closed";

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

  constructor(source: StreamSource) {
    this.#source = source;
    this.#batchSize = source.mapping.BatchSize ?? DEFAULT_BATCH_SIZE;
  }

  kick(): void {
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
        if (records === 0) await this.#idle();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#iterators.clear();
        this.#source.log(`${this.#source.mapping.id}: the stream cannot be read: ${messageOf(error)}\n`);
        await this.#idle();
      }
    }
  }

  async #idle(): Promise<void> {
    const timer = setTimeout(this.#kicked.resolve, POLL_MS);
    await Promise.all([this.#kicked.promise, wait(POLL_GAP_MS)]);
    clearTimeout(timer);
  }

  /** Reads the shards in the order of their creation, because a later shard may contain a newer version of the same item. */
  async #readShards(): Promise<number> {
    if (this.#shards.length === 0) this.#shards = await this.#listShards();
    const isWanted = ({ record }: StreamEntry): boolean => record !== undefined && this.#source.isWanted(record);
    let count = 0;
    for (const shard of this.#shards) {
      if (this.#source.positions.get(this.#key(shard)) === CLOSED) continue;
      const page = await this.#readPage(shard);
      count += page.entries.length;
      for (const batch of batchesOf(page.entries, isWanted, this.#batchSize)) await this.#process(shard, batch);
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
    const { streams, streamArn: StreamArn } = this.#source;
    const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
    return (StreamDescription?.Shards ?? []).map(({ ShardId = "" }) => ShardId);
  }

  async #readPage(shard: string): Promise<StreamPage> {
    return this.#source.pages.read(this.#iterators.get(shard) ?? (await this.#iterator(shard)));
  }

  /**
   * Returns an iterator after the stored position. If the stream no longer contains this position, the iterator begins at the start of the
   * shard.
   */
  async #iterator(ShardId: string): Promise<string> {
    const { streams, streamArn: StreamArn, positions } = this.#source;
    const SequenceNumber = positions.get(this.#key(ShardId));
    const ask = async (start: { ShardIteratorType: "TRIM_HORIZON" | "AFTER_SEQUENCE_NUMBER" }): Promise<string> => {
      const command = new GetShardIteratorCommand({ StreamArn, ShardId, ...start });
      return (await streams.send(command)).ShardIterator ?? "";
    };
    const beginning = { ShardIteratorType: "TRIM_HORIZON" } as const;
    if (SequenceNumber === undefined) return ask(beginning);
    const saved = { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber } as const;
    return ask(saved).catch((error: unknown) => {
      if (error instanceof TrimmedDataAccessException) return ask(beginning);
      throw error;
    });
  }

  async #process(shard: string, batch: Batch<StreamEntry>): Promise<void> {
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
    const pauseMs = Math.min(RETRY_MS.first * 2 ** (failures - 1), RETRY_MS.longest);
    await wait(pauseMs, undefined, { signal: this.#stopping.signal });
  }

  /**
   * Returns the record as a function gets it from Lambda: with an event id, the region and the ARN of the stream. In the record of the
   * local DynamoDB server, these fields have other values.
   */
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

  /**
   * Sends only the positions of the records to the on-failure destination, as Lambda does. An operator can read the records from the stream
   * for 24 hours.
   */
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

/**
 * The positions of all event sources in the shards of the stream. A key is `SOURCE/SHARD`. A value is the sequence number of the last
 * processed record, or `closed` (see `CLOSED`).
 */
export interface Positions {
  get(key: string): string | undefined;
  set(key: string, sequenceNumber: string): Promise<void>;
}

const Stored = z.record(z.string(), z.string());

/**
 * @param file the file that stores the positions across restarts and crashes. If it is undefined, they are in memory only.
 * @param isNew true if the table is new. Stored positions then belong to an older stream and are ignored.
 */
export function openPositions(file: string | undefined, isNew: boolean): Positions {
  const positions = new Map(file === undefined || isNew ? [] : Object.entries(readPositions(file)));
  let writing = Promise.resolve();
  return {
    get: (key) => positions.get(key),
    set(key, sequenceNumber) {
      positions.set(key, sequenceNumber);
      if (file === undefined) return Promise.resolve();
      writing = writing.then(() => replaceFile(file, JSON.stringify(Object.fromEntries(positions))));
      return writing;
    },
  };
}

function readPositions(file: string): Record<string, string> {
  try {
    return z.parse(Stored, JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw error;
  }
}

/**
 * Replaces the file atomically. After a crash, the file has either the old or the new content. With the old content, the last batch is
 * processed again.
 */
async function replaceFile(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.new`, "w");
  await handle.writeFile(text);
  await handle.close();
  await rename(`${file}.new`, file);
}
