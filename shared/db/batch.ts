/** Batch calls of the table: every key that DynamoDB leaves unprocessed is asked for again. */
import { setTimeout as sleep } from "node:timers/promises";
import { allEnded } from "#shared/all-ended.ts";
import type { AwsCall } from "#shared/aws/json-call.ts";
import { type Attributes, attributeOf, attributesOf, itemOf } from "#shared/db/attributes.ts";
import { ask } from "#shared/db/dynamo.ts";
import { TableBusy } from "#shared/db/errors.ts";
import { Placeholders } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import type { Item } from "#shared/db/table.ts";

/** An eventual read costs half as much, and may not see what was written a moment ago. */
export type Consistency = "strong" | "eventual";

const GET_KEYS = 100;
const WRITE_ITEMS = 25;
const INSERT_STATEMENTS = 25;
const FRUITLESS_TRIES = 8;
const PARALLEL = 12;

export interface HowToGet {
  /** Strong unless it says otherwise. */
  readonly consistency?: Consistency;
  /** Only these fields of each item; it costs as much as the whole of it. */
  readonly fields?: readonly string[];
}

/** Items in no order; keys without an item are left out. */
export async function batchGet(
  call: AwsCall,
  table: string,
  keys: readonly Key[],
  { consistency = "strong", fields }: HowToGet = {},
): Promise<Item[]> {
  const items: Item[] = [];
  const projection = projectionOf(fields);
  await inChunks(keys.map(asKey), GET_KEYS, async (pending) => {
    const { Responses = {}, UnprocessedKeys } = await ask(call, "BatchGetItem", {
      RequestItems: { [table]: { Keys: pending, ConsistentRead: consistency === "strong", ...projection } },
      ReturnConsumedCapacity: "TOTAL",
    });
    if (!Array.isArray(Responses)) items.push(...(Responses[table] ?? []).map(itemOf));
    return UnprocessedKeys?.[table]?.Keys ?? [];
  });
  return items;
}

function projectionOf(fields: readonly string[] | undefined) {
  if (fields === undefined) return {};
  const placeholders = new Placeholders();
  const ProjectionExpression = fields.map((field) => placeholders.name(field)).join();
  return { ProjectionExpression, ...placeholders.attributes() };
}

/** Writes all items, unconditionally and not as one: a reader may see a part of them. */
export const batchPut = (call: AwsCall, table: string, items: readonly Item[]): Promise<void> =>
  batchWrite(call, table, items.map(attributesOf), (Item) => ({ PutRequest: { Item } }));

/** Removes what stands under the keys, unconditionally and not as one. */
export const batchRemove = (call: AwsCall, table: string, keys: readonly Key[]): Promise<void> =>
  batchWrite(call, table, keys.map(asKey), (Key) => ({ DeleteRequest: { Key } }));

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
export async function batchInsert<T extends Item>(call: AwsCall, table: string, items: readonly T[]): Promise<T[]> {
  const standing: T[] = [];
  await inChunks(items, INSERT_STATEMENTS, async (pending) => {
    const Statements = pending.map((item) => insertStatement(table, item));
    const { Responses } = await ask(call, "BatchExecuteStatement", { Statements, ReturnConsumedCapacity: "TOTAL" });
    const ends = Array.isArray(Responses) ? Responses : [];
    return pending.filter((item, i) => {
      const { Code, Message } = ends[i]?.Error ?? {};
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
    Parameters: fields.map(([, value]) => attributeOf(value)),
  };
}

type WriteRequest = { PutRequest: { Item: Attributes } } | { DeleteRequest: { Key: Attributes } };

function batchWrite(
  call: AwsCall,
  table: string,
  entries: readonly Attributes[],
  asRequest: (entry: Attributes) => WriteRequest,
): Promise<void> {
  return inChunks(entries, WRITE_ITEMS, async (pending) => {
    const { UnprocessedItems } = await ask(call, "BatchWriteItem", {
      RequestItems: { [table]: pending.map(asRequest) },
      ReturnConsumedCapacity: "TOTAL",
    });
    const left = UnprocessedItems?.[table] ?? [];
    return left.map(({ PutRequest, DeleteRequest }) => PutRequest?.Item ?? DeleteRequest?.Key ?? {});
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

const asKey = ({ pk, sk }: Key): Attributes => attributesOf({ pk, sk });
