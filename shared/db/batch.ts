/** The batch reads and writes of the table. */
import {
  BatchExecuteStatementCommand,
  BatchGetCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  type DynamoDBDocumentClient,
} from "@aws-sdk/lib-dynamodb";
import type { Pace } from "#shared/aws/pace.ts";
import type { Item } from "#shared/db/expression.ts";
import { Placeholders } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { readable, withShape } from "#shared/db/shapes.ts";

/** An eventually consistent read may miss recent writes. */
export type Consistency = "strong" | "eventual";

const GET_KEYS = 100;
const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;

export interface HowToGet {
  readonly consistency?: Consistency;
  /** DynamoDB still charges for the whole item. */
  readonly fields?: readonly string[];
  /** The type of all items, if known. Each read checks the shape of the items by their type, so `fields` need not contain `type` then. */
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
  await pace.send<Item>(keys.map(keyOf), GET_KEYS, async (pending) => {
    const request = { Keys: [...pending], ConsistentRead: consistency === "strong", ...projection };
    const input = { RequestItems: { [tableName]: request }, ReturnConsumedCapacity: "TOTAL" } as const;
    const { Responses, UnprocessedKeys } = await count("read", (options) =>
      client.send(new BatchGetCommand(input), options),
    );
    for (const item of Responses?.[tableName] ?? []) items.push(readable(item, type));
    return UnprocessedKeys?.[tableName]?.Keys ?? [];
  });
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

/** A retry can help. */
const temporary =
  /^(?:ProvisionedThroughputExceeded|RequestLimitExceeded|ThrottlingError|TransactionConflict|InternalServerError)$/;

/**
 * Writes each item whose key is not in use, and returns the others, and perhaps its own items if a response was lost. PartiQL, because
 * `BatchWriteItem` accepts no conditions and a transaction costs twice as much.
 */
export async function batchInsert<T extends Item>(
  { client, tableName, pace }: BatchTarget,
  items: readonly T[],
): Promise<T[]> {
  const taken: T[] = [];
  await pace.send(items, INSERT_STATEMENTS, async (pending) => {
    const Statements = pending.map((item) => insertStatement(tableName, item));
    const input = { Statements, ReturnConsumedCapacity: "TOTAL" } as const;
    const { Responses } = await count("write", (options) =>
      client.send(new BatchExecuteStatementCommand(input), options),
    );
    return pending.filter((item, i) => {
      const { Code, Message } = Responses?.[i]?.Error ?? {};
      if (Code === "DuplicateItem") taken.push(item);
      else if (Code !== undefined && !temporary.test(Code))
        throw new Error(`an item was not written: ${Code}: ${Message}`);
      return Code !== undefined && Code !== "DuplicateItem";
    });
  });
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
  return pace.send<WriteRequest>(requests, WRITE_ITEMS, async (pending) => {
    const RequestItems = { [tableName]: [...pending] };
    const input = { RequestItems, ReturnConsumedCapacity: "TOTAL" } as const;
    const { UnprocessedItems } = await count("write", (options) => client.send(new BatchWriteCommand(input), options));
    return UnprocessedItems?.[tableName] ?? [];
  });
}

export const keyOf = ({ pk, sk }: Key): Item => ({ pk, sk });
