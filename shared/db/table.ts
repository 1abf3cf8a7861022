/**
 * The one table. Paging cannot be forgotten, unprocessed keys are asked again, conditions are values and their failure a typed
 * error, and a write whose reply was lost is known again. Reads are strongly consistent, except on an index or where asked.
 */
import { randomUUID } from "node:crypto";
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import {
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { batchGet, batchInsert, batchPut, batchRemove, type Consistency } from "#shared/db/batch.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { type Change, type Condition, compileChange, compileCondition, Placeholders } from "#shared/db/expression.ts";
import { DUE_INDEX, type Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { conditionalFailure, failedConditions, throughConflicts } from "#shared/db/refusals.ts";

/** A stored item as it comes: entities parse it with their schema before anyone reads a field. */
export type Item = Record<string, unknown>;

export type Write =
  | { readonly put: Key & Item; readonly when?: Condition }
  | { readonly update: Key; readonly change: Change; readonly when?: Condition }
  | { readonly remove: Key; readonly when?: Condition }
  | { readonly check: Key; readonly when: Condition };

export interface QuerySpec {
  readonly pk: string;
  /** Only sort keys with this beginning. */
  readonly begins?: string;
  /** Only sort keys up to and including this one. */
  readonly upTo?: string;
  /** Only sort keys from this one on; needs `upTo`. */
  readonly from?: string;
  readonly newestFirst?: boolean;
  /** Items per page; the iteration still covers all pages. */
  readonly pageItems?: number;
  /** Only these fields of each item; it costs as much as the whole of it. */
  readonly fields?: readonly string[];
  readonly index?: typeof DUE_INDEX.name;
  /** Strong unless it says otherwise; an index has no strong reads. */
  readonly consistency?: Consistency;
}

export interface Table {
  get(key: Key): Promise<Item | undefined>;
  /** Items in no order; keys without an item are left out. */
  batchGet(keys: readonly Key[], consistency?: Consistency): Promise<Item[]>;
  /** Writes all of them, unconditionally and not as one. */
  batchPut(items: readonly (Key & Item)[]): Promise<void>;
  /** Writes each item where none stands under its key, not as one; gives those under whose keys one does. */
  insert<T extends Key & Item>(items: readonly T[]): Promise<T[]>;
  /** Removes all of them, unconditionally and not as one. */
  batchRemove(keys: readonly Key[]): Promise<void>;
  query(spec: QuerySpec): AsyncGenerator<Item, void, undefined>;
  /** One write. Gives the item as it stands afterwards where `write` is an update. Throws ConditionFailed. */
  write(write: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined>;
  /** All or none, at most 100. Throws ConditionFailed. */
  transact(writes: readonly Write[]): Promise<void>;
}

/** A client whose every call ends: short timeouts, a few tries of its own. */
export function dynamoClient(config: DynamoDBClientConfig = {}): DynamoDBDocumentClient {
  const client = new DynamoDBClient({
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 3_000, throwOnRequestTimeout: true },
    ...config,
  });
  // It copies every answer for a logger that there is not: a tenth of what a long read costs.
  client.middlewareStack.remove("loggerMiddleware");
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}

export function openTable(tableName: string, client: DynamoDBDocumentClient = dynamoClient()): Table {
  const asked = { TableName: tableName, ReturnConsumedCapacity: "TOTAL" } as const;

  async function get(key: Key): Promise<Item | undefined> {
    const command = new GetCommand({ ...asked, Key: { pk: key.pk, sk: key.sk }, ConsistentRead: true });
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
    let from: Record<string, unknown> | undefined;
    do {
      const command = new QueryCommand({
        ...asked,
        KeyConditionExpression: parts.join(" AND "),
        ...placeholders.attributes(),
        ProjectionExpression,
        ...(spec.index === undefined ? { ConsistentRead: spec.consistency !== "eventual" } : { IndexName: spec.index }),
        ScanIndexForward: spec.newestFirst !== true,
        Limit: spec.pageItems,
        ExclusiveStartKey: from,
      });
      const answer = await count("read", () => client.send(command));
      yield* answer.Items ?? [];
      from = answer.LastEvaluatedKey;
    } while (from !== undefined);
  }

  /** `writeId` marks a conditional write, so that a retry after a lost reply finds its own work instead of a failed condition. */
  async function write(entry: Exclude<Write, { check: Key } | { remove: Key }>): Promise<Item | undefined> {
    const writeId = entry.when === undefined ? undefined : randomUUID();
    try {
      return (await throughConflicts(() => count("write", () => sendWrite(entry, writeId)))).Attributes;
    } catch (error) {
      const standing = conditionalFailure(error);
      if (standing === undefined) throw error;
      if (writeId !== undefined && standing.item?.writeId === writeId) return standing.item;
      throw new ConditionFailed([{ index: 0, item: standing.item }]);
    }
  }

  function sendWrite(entry: Exclude<Write, { check: Key } | { remove: Key }>, writeId: string | undefined) {
    const placeholders = new Placeholders();
    const onFailure = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" } as const;
    const condition =
      entry.when === undefined ? {} : { ConditionExpression: compileCondition(entry.when, placeholders), ...onFailure };
    if ("put" in entry) {
      const Item = { ...entry.put, writeId };
      return client.send(new PutCommand({ ...asked, Item, ...condition, ...placeholders.attributes() }));
    }
    const change = { ...entry.change, set: { ...entry.change.set, writeId } };
    const command = new UpdateCommand({
      ...asked,
      Key: { pk: entry.update.pk, sk: entry.update.sk },
      UpdateExpression: compileChange(change, placeholders),
      ...condition,
      ...placeholders.attributes(),
      ReturnValues: "ALL_NEW",
    });
    return client.send(command);
  }

  /** The token makes the transaction idempotent over the client's own retries and ours. */
  async function transact(writes: readonly Write[]): Promise<void> {
    const command = new TransactWriteCommand({
      TransactItems: writes.map((entry) => transactItem(tableName, entry)),
      ClientRequestToken: randomUUID(),
      ReturnConsumedCapacity: "TOTAL",
    });
    await throughConflicts(() => count("write", () => client.send(command))).catch((error: unknown) => {
      const failed = failedConditions(error);
      throw failed.length > 0 ? new ConditionFailed(failed) : error;
    });
  }

  return {
    get,
    batchGet: (keys, consistency = "strong") => batchGet(client, tableName, keys, consistency),
    batchPut: (items) => batchPut(client, tableName, items),
    insert: (items) => batchInsert(client, tableName, items),
    batchRemove: (keys) => batchRemove(client, tableName, keys),
    query,
    write,
    transact,
  };
}

function transactItem(tableName: string, entry: Write) {
  const placeholders = new Placeholders();
  if ("check" in entry) {
    const ConditionExpression = compileCondition(entry.when, placeholders);
    const Key = { pk: entry.check.pk, sk: entry.check.sk };
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
    const Key = { pk: entry.update.pk, sk: entry.update.sk };
    return { Update: { TableName: tableName, Key, UpdateExpression, ...condition, ...placeholders.attributes() } };
  }
  const Key = { pk: entry.remove.pk, sk: entry.remove.sk };
  return { Delete: { TableName: tableName, Key, ...condition, ...placeholders.attributes() } };
}
