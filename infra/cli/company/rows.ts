/**
 * Reads and removes the rows of one company. It scans the whole table and does not query the known kinds of keys. It therefore also finds
 * rows of a kind that a later release adds.
 */
import { type DynamoDBDocumentClient, ScanCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import type { Pace } from "./pace.ts";

export interface RowStore {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly table: Table;
  readonly reads: Pace;
  readonly writes: Pace;
}

/**
 * Maximum read units per second. A scan segment reads one partition at a time. Four segments therefore use at most a sixth of a partition's
 * 3 000 read units.
 */
export const READ_UNITS = 2_000;
/** Maximum write units per second. They are half of a partition's 1 000 write units. */
export const WRITE_UNITS = 500;
export const SEGMENTS = 4;

const StoredKey = z.object({ pk: z.string(), sk: z.string() });
export const keyOfRow = (row: Item): Key => StoredKey.parse(row);

export interface Page {
  readonly rows: readonly Item[];
  /** The position after the page. Undefined after the last page. */
  readonly next: Item | undefined;
}

export interface Scan {
  readonly segment: number;
  readonly segments: number;
  readonly from?: Item | undefined;
  readonly consistency: "strong" | "eventual";
  /** If true, only the key and the type of each row are returned. */
  readonly keysOnly?: boolean;
}

/**
 * Returns the condition that a row belongs to the company. The keys of users' rows do not contain the company, so these rows are found by
 * their attributes.
 */
const ofCompany = (companyId: number) => ({
  FilterExpression:
    "begins_with(pk, :company) OR ((begins_with(pk, :subject) OR begins_with(pk, :session) OR begins_with(pk, :email)) AND (companyId = :id OR sk = :address))",
  ExpressionAttributeValues: {
    ":company": `C#${companyId}#`,
    ":subject": "S#",
    ":session": "SE#",
    ":email": "E#",
    ":id": companyId,
    ":address": `COMPANY#${companyId}`,
  },
});

/**
 * Yields the company's rows in one scan segment. Each page comes from at most one megabyte of the table. The next page is read before a
 * page is yielded, because the caller may remove the rows of the page: the local table engine cannot continue a scan behind a removed row.
 */
export async function* companyPages(store: RowStore, companyId: number, scan: Scan): AsyncGenerator<Page> {
  let from = scan.from;
  let page: Page | undefined;
  do {
    const command = new ScanCommand({
      TableName: store.tableName,
      ...ofCompany(companyId),
      Segment: scan.segment,
      TotalSegments: scan.segments,
      ConsistentRead: scan.consistency === "strong",
      ...(scan.keysOnly === true && {
        ProjectionExpression: "pk, sk, #type",
        ExpressionAttributeNames: { "#type": "type" },
      }),
      ExclusiveStartKey: from,
      ReturnConsumedCapacity: "TOTAL",
    });
    const { Items = [], LastEvaluatedKey } = await store.reads.spend(async () => {
      const result = await store.client.send(command);
      return { result, units: result.ConsumedCapacity?.CapacityUnits ?? 0 };
    });
    from = LastEvaluatedKey;
    if (page !== undefined) yield page;
    page = { rows: Items, next: from };
  } while (from !== undefined);
  yield page;
}

/** Calls `work` with the keys of each page of the company's rows. The segments are read concurrently. Returns the number of rows. */
async function eachPage(
  store: RowStore,
  companyId: number,
  work: (rows: readonly Item[]) => Promise<number>,
): Promise<number> {
  const segment = async (_: unknown, number: number): Promise<number> => {
    const scan = { segment: number, segments: SEGMENTS, consistency: "strong", keysOnly: true } as const;
    let rows = 0;
    for await (const page of companyPages(store, companyId, scan)) rows += await work(page.rows);
    return rows;
  };
  const counts = await Promise.all(Array.from({ length: SEGMENTS }, segment));
  return counts.reduce((sum, count) => sum + count, 0);
}

export async function countRows(store: RowStore, companyId: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  await eachPage(store, companyId, async (rows) => {
    for (const row of rows) counts[typeOf(row)] = (counts[typeOf(row)] ?? 0) + 1;
    return rows.length;
  });
  return counts;
}

/** Returns the type of a row. Rows that only reserve or find something may have no type. */
export const typeOf = ({ type }: Item): string => (typeof type === "string" ? type : "other");

export function removeRows(
  store: RowStore,
  companyId: number,
  kept: (key: Key) => boolean,
  progress: (rows: number) => void = () => undefined,
): Promise<number> {
  let removed = 0;
  return eachPage(store, companyId, async (rows) => {
    const keys = rows.map(keyOfRow).filter((key) => !kept(key));
    for (let first = 0; first < keys.length; first += ROWS_TOGETHER) {
      await removeKeys(store, keys.slice(first, first + ROWS_TOGETHER));
    }
    removed += keys.length;
    progress(removed);
    return keys.length;
  });
}

/** Number of rows that are removed with one batch call. DynamoDB accepts at most this number. */
export const ROWS_TOGETHER = 25;

export const removeKeys = ({ writes, table }: RowStore, keys: readonly Key[]): Promise<void> =>
  writes.spend(async () => {
    const { usage } = await metered(() => table.batchRemove(keys.map(({ pk, sk }) => ({ pk, sk }))));
    return { result: undefined, units: usage.writeUnits };
  });

export const putRows = ({ writes, table }: RowStore, rows: readonly (Key & Item)[]): Promise<void> =>
  writes.spend(async () => {
    const { usage } = await metered(() => table.batchPut(rows));
    return { result: undefined, units: usage.writeUnits };
  });
