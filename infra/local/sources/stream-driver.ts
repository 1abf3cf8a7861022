/** Reads the shards (parts) of a table's stream in order, and stores the position up to which the records are processed. */
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type _Record as SdkRecord,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";
import { at } from "#shared/at.ts";
import type { LocalFunction } from "../runtime/function.ts";
import { REGION } from "../servers/address.ts";
import { functionArn } from "../template/names.ts";
import type { Mapping } from "../template/stack.ts";
import type { Driver } from "./poller.ts";
import { CLOSED, type Positions } from "./positions.ts";
import { type Batch, batchesOf, type GivenUp, processBatch } from "./stream-batch.ts";
import { lambdaRecord, type StreamRecord } from "./stream-record.ts";

interface StreamSource {
  readonly mapping: Mapping;
  readonly target: LocalFunction;
  readonly streams: DynamoDBStreamsClient;
  readonly tableVersion: () => number | undefined;
  readonly isWanted: (record: SdkRecord) => boolean;
  readonly streamArn: string;
  readonly positions: Positions;
  /** Sends a message to the on-failure destination. Does nothing if the event source has no such destination. */
  readonly onFailure: (body: object) => Promise<void>;
}

/** Milliseconds to wait before a retry. The wait doubles after each failure. Lambda's longer waits would make the tests slow. */
const RETRY_MS = { first: 100, longest: 1_000 } as const;
const PAGE_RECORDS = 1_000;

interface ShardBatch extends Batch {
  readonly shard: string;
}

export class StreamDriver implements Driver<ShardBatch> {
  readonly id: string;
  /** The records of a shard are processed in their order, so one batch follows the other. */
  readonly concurrency = 1;
  readonly fetchesAhead = false;
  readonly #source: StreamSource;
  readonly #iterators = new Map<string, string>();
  #shards: readonly string[] = [];
  #batches: ShardBatch[] = [];
  /** The version of the tables at which the stream had no further records. At this version, `fetch` does not ask again. */
  #emptyAt: number | undefined;

  constructor(source: StreamSource) {
    this.id = source.mapping.id;
    this.#source = source;
  }

  /** Reads the shards in the order of their creation, because a later shard may contain a newer version of the same item. */
  async fetch(): Promise<boolean> {
    const version = this.#source.tableVersion();
    if (version !== undefined && version === this.#emptyAt) return false;
    if (this.#shards.length === 0) this.#shards = await this.#listShards();
    const { streams, positions, isWanted, mapping } = this.#source;
    for (const shard of this.#shards) {
      if (positions.get(this.#key(shard)) === CLOSED) continue;
      const ShardIterator = this.#iterators.get(shard) ?? (await this.#iterator(shard));
      const page = await streams.send(new GetRecordsCommand({ ShardIterator, Limit: PAGE_RECORDS }));
      const entries = (page.Records ?? []).map((record) => ({
        position: String(record.dynamodb?.SequenceNumber),
        record: isWanted(record) ? lambdaRecord(record) : undefined,
      }));
      const batches = batchesOf(entries, mapping.BatchSize);
      this.#batches.push(...batches.map((batch) => ({ ...batch, shard })));
      if (page.NextShardIterator !== undefined) this.#iterators.set(shard, page.NextShardIterator);
      else {
        this.#batches.push({ shard, records: [], position: CLOSED });
        this.#shards = [];
      }
    }
    const found = this.#batches.length > 0;
    this.#emptyAt = found ? undefined : version;
    return found;
  }

  take(): ShardBatch | undefined {
    return this.#batches.shift();
  }

  async process({ shard, records, position }: ShardBatch, signal: AbortSignal): Promise<void> {
    const { mapping, target, positions } = this.#source;
    const rules = {
      bisect: mapping.BisectBatchOnFunctionError,
      maxRetries: mapping.MaximumRetryAttempts,
      maxAgeSeconds: mapping.MaximumRecordAgeInSeconds,
    };
    const key = this.#key(shard);
    try {
      await processBatch(records, rules, {
        invoke: (part) => target.invoke({ Records: part.map((record) => this.#eventRecord(shard, record)) }),
        checkpoint: (sequenceNumber) => positions.set(key, sequenceNumber),
        giveUp: (part, reason, invocations) => this.#giveUp(shard, part, reason, invocations),
        assertRunning: () => signal.throwIfAborted(),
        pause: (failures) =>
          wait(Math.min(RETRY_MS.first * 2 ** (failures - 1), RETRY_MS.longest), undefined, { signal }),
        now: Date.now,
      });
      if (positions.get(key) !== position) await positions.set(key, position);
    } catch (error) {
      // The next fetch reads the records that follow the stored position again.
      this.#iterators.clear();
      this.#batches = [];
      throw error;
    }
  }

  async #listShards(): Promise<string[]> {
    const { streams, streamArn: StreamArn } = this.#source;
    const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
    return (StreamDescription?.Shards ?? []).map(({ ShardId }) => String(ShardId));
  }

  /** Returns an iterator after the stored position, or at the start of the shard if the stream no longer contains this position. */
  async #iterator(ShardId: string): Promise<string> {
    const { streams, streamArn: StreamArn, positions } = this.#source;
    const SequenceNumber = positions.get(this.#key(ShardId));
    const ask = async (start: { ShardIteratorType: "TRIM_HORIZON" | "AFTER_SEQUENCE_NUMBER" }): Promise<string> => {
      const command = new GetShardIteratorCommand({ StreamArn, ShardId, ...start });
      return String((await streams.send(command)).ShardIterator);
    };
    const beginning = { ShardIteratorType: "TRIM_HORIZON" } as const;
    if (SequenceNumber === undefined) return ask(beginning);
    const saved = { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber } as const;
    return ask(saved).catch((error: unknown) => {
      if (error instanceof TrimmedDataAccessException) return ask(beginning);
      throw error;
    });
  }

  /** Returns the record as Lambda passes it. In the records of the local DynamoDB server, these three fields have other values. */
  #eventRecord(shard: string, record: StreamRecord): object {
    const identity = `${this.#source.streamArn}/${shard}/${record.dynamodb.SequenceNumber}`;
    return {
      ...record,
      eventID: createHash("md5").update(identity).digest("hex"),
      awsRegion: REGION,
      eventSourceARN: this.#source.mapping.EventSourceArn,
    };
  }

  /** Sends only the positions of the records, as Lambda does. An operator can read the records from the stream for 24 hours. */
  async #giveUp(shard: string, records: readonly StreamRecord[], reason: GivenUp, invocations: number): Promise<void> {
    const { mapping, target, onFailure } = this.#source;
    const [first, last] = [at(records, 0).dynamodb, at(records, records.length - 1).dynamodb];
    const timeOf = (record: StreamRecord["dynamodb"]): string =>
      new Date(record.ApproximateCreationDateTime * 1_000).toISOString();
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
        startSequenceNumber: first.SequenceNumber,
        endSequenceNumber: last.SequenceNumber,
        approximateArrivalOfFirstRecord: timeOf(first),
        approximateArrivalOfLastRecord: timeOf(last),
        batchSize: records.length,
        streamArn: mapping.EventSourceArn,
      },
    });
  }

  #key(shard: string): string {
    return `${this.id}/${shard}`;
  }
}
