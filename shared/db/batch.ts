/** The batch calls of the table. Every entry that DynamoDB leaves unprocessed is sent again. */
import {
  BatchExecuteStatementCommand,
  BatchGetCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  type DynamoDBDocumentClient,
} from "@aws-sdk/lib-dynamodb";
import { Placeholders } from "#shared/db/expression.ts";
import type { Item } from "#shared/db/item.ts";
import type { Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import type { Pace } from "#shared/db/pacing.ts";
import { isThrottled } from "#shared/db/refusals.ts";

/** An eventual read costs half as much, and may not see the latest writes. */
export type Consistency = "strong" | "eventual";

const GET_KEYS = 100;
const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;

export interface HowToGet {
  /** Default: strong. */
  readonly consistency?: Consistency;
  /** Only these fields of each item. The units are those of the whole item. */
  readonly fields?: readonly string[];
}

export interface BatchTarget {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly pace: Pace;
}

/** Items in no order; keys without an item are left out. */
export async function batchGet(
  { client, tableName, pace }: BatchTarget,
  keys: readonly Key[],
  { consistency = "strong", fields }: HowToGet = {},
): Promise<Item[]> {
  const items: Item[] = [];
  const projection = projectionOf(fields);
  await pace.send<Item>(keys.map(keyOf), GET_KEYS, (pending) =>
    unlessThrottled(pending, async () => {
      const request = { Keys: [...pending], ConsistentRead: consistency === "strong", ...projection };
      const input = { RequestItems: { [tableName]: request }, ReturnConsumedCapacity: "TOTAL" } as const;
      const { Responses, UnprocessedKeys } = await count("read", () => client.send(new BatchGetCommand(input)));
      for (const item of Responses?.[tableName] ?? []) items.push(item);
      return UnprocessedKeys?.[tableName]?.Keys ?? [];
    }),
  );
  return items;
}

function projectionOf(fields: readonly string[] | undefined) {
  if (fields === undefined) return {};
  const placeholders = new Placeholders();
  const ProjectionExpression = fields.map((field) => placeholders.name(field)).join();
  return { ProjectionExpression, ...placeholders.attributes() };
}

/** Writes all items, unconditionally and not as one: a reader may see a part of them. */
export const batchPut = (target: BatchTarget, items: readonly Item[]): Promise<void> =>
  batchWrite(
    target,
    items.map((Item) => ({ PutRequest: { Item } })),
  );

/** Removes the items under the keys, unconditionally and not as one. */
export const batchRemove = (target: BatchTarget, keys: readonly Key[]): Promise<void> =>
  batchWrite(
    target,
    keys.map((key) => ({ DeleteRequest: { Key: keyOf(key) } })),
  );

/** The codes with which one statement of a batch fails for now. */
const passing: ReadonlySet<string> = new Set([
  "ProvisionedThroughputExceeded",
  "RequestLimitExceeded",
  "ThrottlingError",
  "TransactionConflict",
  "InternalServerError",
]);

/**
 * Writes each item where its key is free, not as one. Gives those whose key was taken; after a lost reply these include items that
 * this very call has written.
 *
 * Uses PartiQL: `BatchWriteItem` has no conditions, and a transaction costs twice as much. No key may come twice.
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
      const { Responses } = await count("write", () => client.send(new BatchExecuteStatementCommand(input)));
      return pending.filter((item, i) => {
        const { Code, Message } = Responses?.[i]?.Error ?? {};
        if (Code === "DuplicateItem") taken.push(item);
        else if (Code !== undefined && !passing.has(Code))
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
      const { UnprocessedItems } = await count("write", () => client.send(new BatchWriteCommand(input)));
      return UnprocessedItems?.[tableName] ?? [];
    }),
  );
}

/** DynamoDB throttles a whole batch when it can process none of it. */
async function unlessThrottled<T>(pending: readonly T[], send: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await send();
  } catch (error) {
    if (isThrottled(error)) return pending;
    throw error;
  }
}

const keyOf = ({ pk, sk }: Key): Item => ({ pk, sk });
