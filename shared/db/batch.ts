/** Batch calls of the table: every key that DynamoDB leaves unprocessed is asked for again. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  BatchExecuteStatementCommand,
  BatchGetCommand,
  BatchWriteCommand,
  type DynamoDBDocumentClient,
} from "@aws-sdk/lib-dynamodb";
import { allEnded } from "#shared/all-ended.ts";
import { TableBusy } from "#shared/db/errors.ts";
import type { Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import type { Item } from "#shared/db/table.ts";

/** An eventual read costs half as much, and may not see what was written a moment ago. */
export type Consistency = "strong" | "eventual";

const GET_KEYS = 100;
const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;
const FRUITLESS_TRIES = 8;
const PARALLEL = 12;

/** Items in no order; keys without an item are left out. */
export async function batchGet(
  client: DynamoDBDocumentClient,
  table: string,
  keys: readonly Key[],
  consistency: Consistency,
): Promise<Item[]> {
  const items: Item[] = [];
  await inChunks(keys.map(asKey), GET_KEYS, async (pending) => {
    const command = new BatchGetCommand({
      RequestItems: { [table]: { Keys: [...pending], ConsistentRead: consistency === "strong" } },
      ReturnConsumedCapacity: "TOTAL",
    });
    const answer = await count("read", () => client.send(command));
    items.push(...(answer.Responses?.[table] ?? []));
    return answer.UnprocessedKeys?.[table]?.Keys ?? [];
  });
  return items;
}

/** Writes all items, unconditionally and not as one: a reader may see a part of them. */
export const batchPut = (client: DynamoDBDocumentClient, table: string, items: readonly Item[]): Promise<void> =>
  batchWrite(client, table, items, (Item) => ({ PutRequest: { Item } }));

/** Removes what stands under the keys, unconditionally and not as one. */
export const batchRemove = (client: DynamoDBDocumentClient, table: string, keys: readonly Key[]): Promise<void> =>
  batchWrite(client, table, keys.map(asKey), (Key) => ({ DeleteRequest: { Key } }));

/** Of a statement that another try may well carry out. */
const passing = new Set([
  "ProvisionedThroughputExceeded",
  "RequestLimitExceeded",
  "ThrottlingError",
  "TransactionConflict",
  "InternalServerError",
]);

/**
 * Writes each item where none stands under its key, not as one. Gives those that were not written for that; a reply that was
 * lost makes one of them of what this very call has written.
 *
 * In PartiQL, since `BatchWriteItem` knows no conditions and a transaction costs twice as much. No key may come twice.
 */
export async function batchInsert<T extends Item>(
  client: DynamoDBDocumentClient,
  table: string,
  items: readonly T[],
): Promise<T[]> {
  const standing: T[] = [];
  await inChunks(items, INSERT_STATEMENTS, async (pending) => {
    const Statements = pending.map((item) => insertStatement(table, item));
    const command = new BatchExecuteStatementCommand({ Statements, ReturnConsumedCapacity: "TOTAL" });
    const { Responses = [] } = await count("write", () => client.send(command));
    return pending.filter((item, i) => {
      const { Code, Message } = Responses[i]?.Error ?? {};
      if (Code === "DuplicateItem") standing.push(item);
      else if (Code !== undefined && !passing.has(Code))
        throw new Error(`an item was not written: ${Code}: ${Message}`);
      return Code !== undefined && Code !== "DuplicateItem";
    });
  });
  return standing;
}

function insertStatement(table: string, item: Item) {
  const fields = Object.entries(item).filter(([, value]) => value !== undefined);
  return {
    Statement: `INSERT INTO "${table}" VALUE {${fields.map(([name]) => `'${name}': ?`).join(", ")}}`,
    Parameters: fields.map(([, value]) => value),
  };
}

type WriteRequest = { PutRequest: { Item: Item } } | { DeleteRequest: { Key: Item } };

function batchWrite(
  client: DynamoDBDocumentClient,
  table: string,
  entries: readonly Item[],
  asRequest: (entry: Item) => WriteRequest,
): Promise<void> {
  return inChunks(entries, WRITE_ITEMS, async (pending) => {
    const command = new BatchWriteCommand({
      RequestItems: { [table]: pending.map(asRequest) },
      ReturnConsumedCapacity: "TOTAL",
    });
    const answer = await count("write", () => client.send(command));
    const left = answer.UnprocessedItems?.[table] ?? [];
    return left.flatMap(({ PutRequest, DeleteRequest }) => PutRequest?.Item ?? DeleteRequest?.Key ?? []);
  });
}

/** `send` gives what was left unprocessed. A few chunks at a time: more would only wait for a socket. */
async function inChunks<T>(
  entries: readonly T[],
  size: number,
  send: (pending: readonly T[]) => Promise<T[]>,
): Promise<void> {
  let next = 0;
  async function work(): Promise<void> {
    while (next < entries.length) {
      const chunk = entries.slice(next, next + size);
      next += size;
      await untilProcessed(chunk, send);
    }
  }
  await allEnded(Array.from({ length: PARALLEL }, work));
}

/** Gives up only when call after call processes nothing. */
async function untilProcessed<T>(chunk: readonly T[], send: (pending: readonly T[]) => Promise<T[]>): Promise<void> {
  let pending = chunk;
  for (let fruitless = 0; pending.length > 0; ) {
    const left = await send(pending);
    fruitless = left.length === pending.length ? fruitless + 1 : 0;
    if (fruitless > FRUITLESS_TRIES) throw new TableBusy(`${left.length} keys stayed unprocessed`);
    if (left.length > 0) await sleep(Math.random() * Math.min(800, 25 * 2 ** fruitless));
    pending = left;
  }
}

const asKey = ({ pk, sk }: Key): Item => ({ pk, sk });
