/**
 * The client of the DynamoDB table. A Query reads all pages, a batch retries unprocessed entries, and a failed condition throws
 * ConditionFailed. A retry after a lost reply recognises its own write. Reads are strongly consistent by default.
 */
import { randomUUID } from "node:crypto";
import {
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import {
  batchGet,
  batchInsert,
  batchPut,
  batchRemove,
  type Consistency,
  type HowToGet,
  Pace,
} from "#shared/db/batch.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { compileChange, compileCondition, Placeholders } from "#shared/db/expression.ts";
import { DUE_INDEX, type Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { conditionalFailure, failedConditions, throughConflicts } from "#shared/db/refusals.ts";
import { ConditionFailed } from "#shared/errors.ts";

export interface QuerySpec {
  readonly pk: string;
  readonly begins?: string;
  /** Last sort key, inclusive. */
  readonly upTo?: string;
  /** First sort key, inclusive. Requires `upTo`. */
  readonly from?: string;
  readonly newestFirst?: boolean;
  /** Items per page. The iteration still covers all pages. */
  readonly pageItems?: number;
  readonly limit?: number;
  /** Fields of each item to return. The read still costs the units of the whole item. */
  readonly fields?: readonly string[];
  readonly index?: typeof DUE_INDEX.name;
  /** The default is `strong`. A secondary index supports only eventually consistent reads. */
  readonly consistency?: Consistency;
}

export interface Table {
  get(key: Key): Promise<Item | undefined>;
  /** Returns the existing items in no particular order. */
  batchGet(keys: readonly Key[], how?: HowToGet): Promise<Item[]>;
  batchPut(items: readonly (Key & Item)[]): Promise<void>;
  /** Writes each item whose key is free, without a transaction. Returns the items whose key exists already. */
  insert<T extends Key & Item>(items: readonly T[]): Promise<T[]>;
  batchRemove(keys: readonly Key[]): Promise<void>;
  query(spec: QuerySpec): AsyncGenerator<Item, void, undefined>;
  /** Returns the changed item for an update. Throws ConditionFailed. */
  write(write: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined>;
  /** At most 100 writes. Throws ConditionFailed. */
  transact(writes: readonly Write[]): Promise<void>;
}

export function openTable(tableName: string, client: DynamoDBDocumentClient = dynamoClient()): Table {
  const asked = { TableName: tableName, ReturnConsumedCapacity: "TOTAL" } as const;
  const target = { client, tableName, pace: new Pace() };

  async function get(key: Key): Promise<Item | undefined> {
    const command = new GetCommand({ ...asked, Key: keyOf(key), ConsistentRead: true });
    return (await count("read", () => client.send(command))).Item;
  }

  async function* query(spec: QuerySpec): AsyncGenerator<Item, void, undefined> {
    const placeholders = new Placeholders();
    const [partition, sort] = spec.index === undefined ? ["pk", "sk"] : [DUE_INDEX.partitionKey, DUE_INDEX.sortKey];
    const parts = [`${placeholders.name(partition)} = ${placeholders.value(spec.pk)}`];
    if (spec.begins !== undefined) {
      parts.push(`begins_with(${placeholders.name(sort)}, ${placeholders.value(spec.begins)})`);
    }
    if (spec.from !== undefined) {
      const [first, last] = [placeholders.value(spec.from), placeholders.value(spec.upTo)];
      parts.push(`${placeholders.name(sort)} BETWEEN ${first} AND ${last}`);
    } else if (spec.upTo !== undefined) {
      parts.push(`${placeholders.name(sort)} <= ${placeholders.value(spec.upTo)}`);
    }
    const ProjectionExpression = spec.fields?.map((field) => placeholders.name(field)).join();
    let from: Item | undefined;
    let left = spec.limit;
    do {
      const command = new QueryCommand({
        ...asked,
        KeyConditionExpression: parts.join(" AND "),
        ...placeholders.attributes(),
        ProjectionExpression,
        ...(spec.index === undefined ? { ConsistentRead: spec.consistency !== "eventual" } : { IndexName: spec.index }),
        ScanIndexForward: spec.newestFirst !== true,
        Limit: left === undefined ? spec.pageItems : Math.min(left, spec.pageItems ?? left),
        ExclusiveStartKey: from,
      });
      const answer = await count("read", () => client.send(command));
      yield* answer.Items ?? [];
      from = answer.LastEvaluatedKey;
      if (left !== undefined) left -= answer.Items?.length ?? 0;
    } while (from !== undefined && left !== 0);
  }

  /**
   * Stores a random `writeId` with each conditional write. If a reply is lost, the SDK's retry fails its own condition. An item with the
   * same `writeId` then proves that the first attempt succeeded.
   */
  async function write(entry: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined> {
    const writeId = entry.when === undefined ? undefined : randomUUID();
    try {
      return (await throughConflicts(() => sendWrite(entry, writeId))).Attributes;
    } catch (error) {
      const failure = conditionalFailure(error);
      if (failure === undefined) throw error;
      if (writeId !== undefined && failure.item?.writeId === writeId) return failure.item;
      throw new ConditionFailed([{ index: 0, item: failure.item }]);
    }
  }

  function sendWrite(entry: Exclude<Write, { check: Key } | { remove: Key }>, writeId: string | undefined) {
    const placeholders = new Placeholders();
    const onFailure = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
    const condition =
      entry.when === undefined ? {} : { ConditionExpression: compileCondition(entry.when, placeholders), ...onFailure };
    if ("put" in entry) {
      const command = new PutCommand({
        ...asked,
        Item: { ...entry.put, writeId },
        ...condition,
        ...placeholders.attributes(),
      });
      return count("write", () => client.send(command));
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
    return count("write", () => client.send(command));
  }

  /** The request token makes the transaction idempotent, for retries of the SDK and of this function. */
  async function transact(writes: readonly Write[]): Promise<void> {
    const input = {
      TransactItems: writes.map((entry) => transactItem(tableName, entry)),
      ClientRequestToken: randomUUID(),
      ReturnConsumedCapacity: "TOTAL" as const,
    };
    const send = () => count("write", () => client.send(new TransactWriteCommand(input)));
    await throughConflicts(send).catch((error: unknown) => {
      const failed = failedConditions(error);
      throw failed.length > 0 ? new ConditionFailed(failed) : error;
    });
  }

  return {
    get,
    batchGet: (keys, how) => batchGet(target, keys, how),
    batchPut: (items) => batchPut(target, items),
    insert: (items) => batchInsert(target, items),
    batchRemove: (keys) => batchRemove(target, keys),
    query,
    write,
    transact,
  };
}

/** Removes other fields, because a caller may pass a whole item. */
const keyOf = ({ pk, sk }: Key): Item => ({ pk, sk });

function transactItem(tableName: string, entry: Write) {
  const placeholders = new Placeholders();
  if ("check" in entry) {
    const ConditionExpression = compileCondition(entry.when, placeholders);
    const Key = keyOf(entry.check);
    return { ConditionCheck: { TableName: tableName, Key, ConditionExpression, ...placeholders.attributes() } };
  }
  const condition =
    entry.when === undefined
      ? {}
      : {
          ConditionExpression: compileCondition(entry.when, placeholders),
          ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
        };
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
