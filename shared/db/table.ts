/** Reads and writes the DynamoDB table. If the response to a write is lost, the repeated write recognises that the first one succeeded. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from "@aws-sdk/client-dynamodb";
import {
  BatchExecuteStatementCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  type DynamoDBDocumentClient,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { Pace } from "#shared/aws/pace.ts";
import { compileChange, compileCondition, type Item, Placeholders, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { keyOf, openReads, type Reads } from "#shared/db/reads.ts";
import { readable } from "#shared/db/shapes.ts";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

export interface Table extends Reads {
  /** Writes the items without a transaction. A concurrent reader may see some of them without the others. */
  batchPut(items: readonly (Key & Item)[]): Promise<void>;
  /** Writes each item whose key is not in use, without a transaction. Returns the items whose key already exists. */
  insert<T extends Key & Item>(items: readonly T[]): Promise<T[]>;
  batchRemove(keys: readonly Key[]): Promise<void>;
  /** Returns the changed item of an update. Throws ConditionFailed. */
  write(write: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined>;
  /** Executes at most 100 writes in one transaction. Throws ConditionFailed. */
  transact(writes: readonly Write[]): Promise<void>;
}

export function openTable(tableName: string, client: DynamoDBDocumentClient = dynamoClient()): Table {
  const asked = { TableName: tableName, ReturnConsumedCapacity: "TOTAL" } as const;
  const target = { client, tableName, pace: new Pace(TableBusy) };

  /** After a lost response, the SDK repeats the write, and its condition fails. `writeId` in the stored item shows the first success. */
  async function write(entry: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined> {
    const writeId = entry.when === undefined ? undefined : randomUUID();
    try {
      return (await throughConflicts(() => sendWrite(entry, writeId))).Attributes;
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      const item = itemOf(error.Item);
      if (writeId !== undefined && item?.writeId === writeId) return item;
      throw new ConditionFailed([{ index: 0, item }]);
    }
  }

  function sendWrite(entry: Exclude<Write, { check: Key } | { remove: Key }>, writeId: string | undefined) {
    const placeholders = new Placeholders();
    const condition = conditionOf(entry, placeholders);
    if ("put" in entry) {
      const command = new PutCommand({
        ...asked,
        Item: { ...entry.put, writeId },
        ...condition,
        ...placeholders.attributes(),
      });
      return count("write", (options) => client.send(command, options));
    }
    const change = { ...entry.change, set: { ...entry.change.set, writeId } };
    const command = new UpdateCommand({
      ...asked,
      Key: keyOf(entry.update),
      UpdateExpression: compileChange(change, placeholders),
      ...condition,
      ...placeholders.attributes(),
      ReturnValues: "ALL_NEW",
    });
    return count("write", (options) => client.send(command, options));
  }

  /** The request token makes the transaction idempotent, so the SDK may send it again after a lost response. */
  async function transact(writes: readonly Write[]): Promise<void> {
    const input = {
      TransactItems: writes.map((entry) => transactItem(tableName, entry)),
      ClientRequestToken: randomUUID(),
      ReturnConsumedCapacity: "TOTAL" as const,
    };
    const send = () => count("write", (options) => client.send(new TransactWriteCommand(input), options));
    await throughConflicts(send).catch((error: unknown) => {
      const failed = failedConditions(error);
      throw failed.length > 0 ? new ConditionFailed(failed) : error;
    });
  }

  return {
    ...openReads(tableName, client, target.pace),
    batchPut: (items) => {
      const requests = items.map((Item) => ({ PutRequest: { Item } }));
      return batchWrite(target, requests);
    },
    insert: (items) => batchInsert(target, items),
    batchRemove: (keys) => {
      const requests = keys.map((key) => ({ DeleteRequest: { Key: keyOf(key) } }));
      return batchWrite(target, requests);
    },
    write,
    transact,
  };
}

const conditionOf = ({ when }: Pick<Write, "when">, into: Placeholders) =>
  when === undefined
    ? {}
    : { ConditionExpression: compileCondition(when, into), ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const };

function transactItem(tableName: string, entry: Write) {
  const placeholders = new Placeholders();
  if ("check" in entry) {
    const ConditionExpression = compileCondition(entry.when, placeholders);
    const Key = keyOf(entry.check);
    return { ConditionCheck: { TableName: tableName, Key, ConditionExpression, ...placeholders.attributes() } };
  }
  const condition = conditionOf(entry, placeholders);
  if ("put" in entry) {
    return { Put: { TableName: tableName, Item: entry.put, ...condition, ...placeholders.attributes() } };
  }
  if ("update" in entry) {
    const UpdateExpression = compileChange(entry.change, placeholders);
    const Key = keyOf(entry.update);
    return { Update: { TableName: tableName, Key, UpdateExpression, ...condition, ...placeholders.attributes() } };
  }
  const Key = keyOf(entry.remove);
  return { Delete: { TableName: tableName, Key, ...condition, ...placeholders.attributes() } };
}

const CONFLICT_TRIES = 8;

/** Calls `send` until it does not conflict with concurrent writes, at most CONFLICT_TRIES times. `send` must be idempotent. */
async function throughConflicts<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === CONFLICT_TRIES)
        throw new TableBusy("other writers kept changing the same items", { cause: error });
      await sleep(Math.random() * Math.min(800, 25 * 2 ** attempt));
    }
  }
}

/** A retry can help after a conflict with other writers or a temporary fault, but not after a failed condition or invalid input. */
function isConflict(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return !reasonsOf(error).some(({ Code }) => Code === "ConditionalCheckFailed" || Code === "ValidationError");
  }
  return error instanceof TransactionConflictException || error instanceof TransactionInProgressException;
}

const reasonsOf = (error: unknown) =>
  error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];

/** Returns, for each write whose condition failed, the position of the write in the transaction and the stored item. */
function failedConditions(error: unknown): { index: number; item: Item | undefined }[] {
  return reasonsOf(error).flatMap(({ Code, Item }, index) =>
    Code === "ConditionalCheckFailed" ? [{ index, item: itemOf(Item) }] : [],
  );
}

/** The document client converts items in responses, but not those in errors. */
const itemOf = (item: Record<string, AttributeValue> | undefined): Item | undefined =>
  item === undefined ? undefined : readable(unmarshall(item));

const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;

interface BatchTarget {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly pace: Pace;
}

const temporary =
  /^(?:ProvisionedThroughputExceeded|RequestLimitExceeded|ThrottlingError|TransactionConflict|InternalServerError)$/;

/** Returns the items whose key exists, after a lost response also stored ones. Uses PartiQL: `BatchWriteItem` accepts no conditions. */
async function batchInsert<T extends Item>(
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
