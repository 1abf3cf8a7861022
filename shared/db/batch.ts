/** The batch reads and writes of the table. They retry unprocessed entries and adapt to the rate that DynamoDB accepts. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  BatchExecuteStatementCommand,
  BatchGetCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  type DynamoDBDocumentClient,
} from "@aws-sdk/lib-dynamodb";
import type { Item } from "#shared/db/expression.ts";
import { Placeholders } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { isThrottled } from "#shared/db/refusals.ts";
import { readable, withShape } from "#shared/db/shapes.ts";
import { msUntilDeadline } from "#shared/deadline.ts";
import { TableBusy } from "#shared/errors.ts";

/** An eventually consistent read costs half as much as a strongly consistent one, but may miss recent writes. */
export type Consistency = "strong" | "eventual";

const GET_KEYS = 100;
const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;

export interface HowToGet {
  readonly consistency?: Consistency;
  /** The fields of each item to return. DynamoDB still charges for the whole item. */
  readonly fields?: readonly string[];
  /** The type of all items, if the caller knows it. Together with `fields`, it saves the read of the field `type`. */
  readonly type?: string;
}

export interface BatchTarget {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly pace: Pace;
}

export async function batchGet(
  { client, tableName, pace }: BatchTarget,
  keys: readonly Key[],
  { consistency = "strong", fields, type }: HowToGet = {},
): Promise<Item[]> {
  const items: Item[] = [];
  const projection = projectionOf(fields, type);
  await pace.send<Item>(keys.map(keyOf), GET_KEYS, (pending) =>
    unlessThrottled(pending, async () => {
      const request = { Keys: [...pending], ConsistentRead: consistency === "strong", ...projection };
      const input = { RequestItems: { [tableName]: request }, ReturnConsumedCapacity: "TOTAL" } as const;
      const { Responses, UnprocessedKeys } = await count("read", (options) =>
        client.send(new BatchGetCommand(input), options),
      );
      for (const item of Responses?.[tableName] ?? []) items.push(readable(item, type));
      return UnprocessedKeys?.[tableName]?.Keys ?? [];
    }),
  );
  return items;
}

function projectionOf(fields: readonly string[] | undefined, type: string | undefined) {
  if (fields === undefined) return {};
  const placeholders = new Placeholders();
  const ProjectionExpression = withShape(fields, type)
    .map((field) => placeholders.name(field))
    .join();
  return { ProjectionExpression, ...placeholders.attributes() };
}

/** Writes the items without conditions and without a transaction. A concurrent reader may therefore see some items without the others. */
export const batchPut = (target: BatchTarget, items: readonly Item[]): Promise<void> =>
  batchWrite(
    target,
    items.map((Item) => ({ PutRequest: { Item } })),
  );

export const batchRemove = (target: BatchTarget, keys: readonly Key[]): Promise<void> =>
  batchWrite(
    target,
    keys.map((key) => ({ DeleteRequest: { Key: keyOf(key) } })),
  );

/** Error codes of a single statement for which a retry can help. */
const temporary: ReadonlySet<string> = new Set([
  "ProvisionedThroughputExceeded",
  "RequestLimitExceeded",
  "ThrottlingError",
  "TransactionConflict",
  "InternalServerError",
]);

/**
 * Writes each item whose key is not in use, and returns the items whose key already exists. If a response was lost, the result may also
 * contain items that this call itself has written. No two items may have the same key. The function uses PartiQL, because `BatchWriteItem`
 * accepts no conditions and a transaction costs twice as much.
 */
export async function batchInsert<T extends Item>(
  { client, tableName, pace }: BatchTarget,
  items: readonly T[],
): Promise<T[]> {
  const taken: T[] = [];
  await pace.send(items, INSERT_STATEMENTS, (pending) =>
    unlessThrottled(pending, async () => {
      const Statements = pending.map((item) => insertStatement(tableName, item));
      const input = { Statements, ReturnConsumedCapacity: "TOTAL" } as const;
      const { Responses } = await count("write", (options) =>
        client.send(new BatchExecuteStatementCommand(input), options),
      );
      return pending.filter((item, i) => {
        const { Code, Message } = Responses?.[i]?.Error ?? {};
        if (Code === "DuplicateItem") taken.push(item);
        else if (Code !== undefined && !temporary.has(Code))
          throw new Error(`an item was not written: ${Code}: ${Message}`);
        return Code !== undefined && Code !== "DuplicateItem";
      });
    }),
  );
  return taken;
}

function insertStatement(tableName: string, item: Item) {
  const fields = Object.entries(item).filter(([, value]) => value !== undefined);
  return {
    Statement: `INSERT INTO "${tableName}" VALUE {${fields.map(([name]) => `'${name}': ?`).join(", ")}}`,
    Parameters: fields.map(([, value]) => value),
  };
}

type WriteRequest = NonNullable<BatchWriteCommandInput["RequestItems"]>[string][number];

function batchWrite({ client, tableName, pace }: BatchTarget, requests: readonly WriteRequest[]): Promise<void> {
  return pace.send<WriteRequest>(requests, WRITE_ITEMS, (pending) =>
    unlessThrottled(pending, async () => {
      const RequestItems = { [tableName]: [...pending] };
      const input = { RequestItems, ReturnConsumedCapacity: "TOTAL" } as const;
      const { UnprocessedItems } = await count("write", (options) =>
        client.send(new BatchWriteCommand(input), options),
      );
      return UnprocessedItems?.[tableName] ?? [];
    }),
  );
}

/** Calls `send`, which returns the unprocessed entries. If DynamoDB throttles the whole batch, returns all entries as unprocessed. */
async function unlessThrottled<T>(pending: readonly T[], send: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await send();
  } catch (error) {
    if (isThrottled(error)) return pending;
    throw error;
  }
}

/** Maximum number of concurrent batches. More batches would only wait for one of the client's connections. */
const SLOTS = 12;
/** Maximum wait in milliseconds before the next attempt, after an attempt that processed no entry. */
const PAUSE_MS = 2_000;
/** If the caller has no deadline, TableBusy is thrown when no entry was processed for this many milliseconds. */
const PATIENCE_MS = 5_000;
/**
 * If the caller has a deadline, TableBusy is thrown this many milliseconds before it, so that the caller can still respond to its client.
 */
const RESERVE_MS = 2_000;

export type SendChunk<T> = (chunk: readonly T[]) => Promise<readonly T[]>;

/**
 * Adapts the number of concurrent batches to the rate that DynamoDB accepts. The number grows slowly, and falls by up to a half when
 * DynamoDB leaves entries unprocessed. Later calls of `send` begin with this number.
 */
export class Pace {
  #slots = SLOTS;

  /**
   * Sends batches until every entry is processed. Throws TableBusy shortly before the deadline, or if no entry was processed for too long.
   * No batch is still running when it returns or throws.
   */
  async send<T>(entries: readonly T[], size: number, sendChunk: SendChunk<T>): Promise<void> {
    const progress = { atMs: Date.now() };
    const underWay = new Set<Promise<void>>();
    const failures: unknown[] = [];
    let next = 0;
    while (underWay.size > 0 || (next < entries.length && failures.length === 0)) {
      while (next < entries.length && failures.length === 0 && underWay.size < Math.max(1, Math.floor(this.#slots))) {
        const chunk = entries.slice(next, next + size);
        next += size;
        const sent = this.#untilProcessed(chunk, sendChunk, progress)
          .catch((error: unknown) => void failures.push(error))
          .finally(() => underWay.delete(sent));
        underWay.add(sent);
      }
      await Promise.race(underWay);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #untilProcessed<T>(chunk: readonly T[], sendChunk: SendChunk<T>, progress: { atMs: number }): Promise<void> {
    let pending = chunk;
    for (let fruitless = 0; ; ) {
      const left = await sendChunk(pending);
      this.#adjust(pending.length, left.length);
      if (left.length < pending.length) progress.atMs = Date.now();
      if (left.length === 0) return;
      assertTimeLeft(progress.atMs, left.length);
      fruitless = left.length === pending.length ? fruitless + 1 : 0;
      pending = left;
      const pauseMs = Math.random() * Math.min(PAUSE_MS, 25 * 2 ** fruitless);
      await sleep(Math.min(pauseMs, msUntilReserve()));
      assertTimeLeft(progress.atMs, left.length);
    }
  }

  #adjust(sent: number, left: number): void {
    this.#slots =
      left === 0
        ? Math.min(SLOTS, this.#slots + 1 / this.#slots)
        : Math.max(1, this.#slots * Math.max(0.5, (sent - left) / sent));
  }
}

const msUntilReserve = (): number => Math.max(0, (msUntilDeadline() ?? Number.POSITIVE_INFINITY) - RESERVE_MS + 1);

function assertTimeLeft(progressAtMs: number, left: number): void {
  const remaining = msUntilDeadline();
  const isOver = remaining === undefined ? Date.now() - progressAtMs > PATIENCE_MS : remaining < RESERVE_MS;
  if (isOver) throw new TableBusy(`${left} keys stayed unprocessed`);
}

/** Returns only the key of a row or of anything else that has one. */
export const keyOf = ({ pk, sk }: Key): Item => ({ pk, sk });
