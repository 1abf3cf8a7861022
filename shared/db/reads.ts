/** Reads the DynamoDB table. The file is separate from table.ts, which would add 10 KB to the bundle of a function that only reads. */
import { BatchGetCommand, type DynamoDBDocumentClient, GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamoClient } from "#shared/aws/dynamodb.ts";
import { Pace } from "#shared/aws/pace.ts";
import { type Item, Placeholders } from "#shared/db/expression.ts";
import { DUE_INDEX, type Key } from "#shared/db/keys.ts";
import { count } from "#shared/db/meter.ts";
import { readable, withShape } from "#shared/db/shapes.ts";
import { TableBusy } from "#shared/errors.ts";

/** The default is a strongly consistent read. An eventually consistent read may miss recent writes. */
export type Consistency = "strong" | "eventual";

export interface HowToGet {
  readonly consistency?: Consistency;
  /** The fields to return, by default all. DynamoDB still charges for the whole item. */
  readonly fields?: readonly string[];
  /** The `type` of all items, if known. Otherwise, `fields` also requests `type`, because the check of an item's shape needs the type. */
  readonly type?: string;
}

export interface QuerySpec extends HowToGet {
  readonly pk: string;
  readonly begins?: string;
  /** The last sort key of the range, included. */
  readonly upTo?: string;
  /** The first sort key of the range, included. Set `upTo` too. */
  readonly from?: string;
  readonly newestFirst?: boolean;
  /** Items per page. The result still contains all pages. */
  readonly pageItems?: number;
  /** Called before each page after the first one. Other writers may have changed the items between two pages. */
  readonly onNextPage?: () => void;
  readonly limit?: number | undefined;
  /** A read of a secondary index is always eventually consistent. */
  readonly index?: typeof DUE_INDEX.name;
}

export interface Reads {
  get(key: Key): Promise<Item | undefined>;
  /** Returns the existing items in no particular order. */
  batchGet(keys: readonly Key[], how?: HowToGet): Promise<Item[]>;
  query(spec: QuerySpec): AsyncGenerator<Item, void, undefined>;
}

const GET_KEYS = 100;

/** All reads and writes of a table should share one `pace`, which adapts concurrent batches to the rate that the table accepts. */
export function openReads(
  tableName: string,
  client: DynamoDBDocumentClient = dynamoClient(),
  pace: Pace = new Pace(TableBusy),
): Reads {
  const asked = { TableName: tableName, ReturnConsumedCapacity: "TOTAL" } as const;

  async function get(key: Key): Promise<Item | undefined> {
    const command = new GetCommand({ ...asked, Key: keyOf(key), ConsistentRead: true });
    const { Item: item } = await count("read", (options) => client.send(command, options));
    return item && readable(item);
  }

  async function batchGet(
    wanted: readonly Key[],
    { consistency = "strong", fields, type }: HowToGet = {},
  ): Promise<Item[]> {
    const items: Item[] = [];
    const placeholders = new Placeholders();
    const projection = { ...projectionOf(fields, type, placeholders), ...placeholders.attributes() };
    await pace.send<Item>(wanted.map(keyOf), GET_KEYS, async (pending) => {
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
    const projection = projectionOf(spec.fields, spec.type, placeholders);
    let from: Item | undefined;
    let left = spec.limit;
    for (;;) {
      const command = new QueryCommand({
        ...asked,
        KeyConditionExpression: parts.join(" AND "),
        ...placeholders.attributes(),
        ...projection,
        ...(spec.index === undefined ? { ConsistentRead: spec.consistency !== "eventual" } : { IndexName: spec.index }),
        ScanIndexForward: spec.newestFirst !== true,
        Limit: left === undefined ? spec.pageItems : Math.min(left, spec.pageItems ?? left),
        ExclusiveStartKey: from,
      });
      const answer = await count("read", (options) => client.send(command, options));
      const { Items = [], LastEvaluatedKey } = answer;
      for (const item of Items) yield readable(item, spec.type);
      from = LastEvaluatedKey;
      if (left !== undefined) left -= Items.length;
      if (from === undefined || left === 0) return;
      spec.onNextPage?.();
    }
  }

  return { get, batchGet, query };
}

function projectionOf(fields: readonly string[] | undefined, type: string | undefined, into: Placeholders) {
  if (fields === undefined) return {};
  const names = withShape(fields, type).map((field) => into.name(field));
  return { ProjectionExpression: names.join() };
}

export const keyOf = ({ pk, sk }: Key): Item => ({ pk, sk });
