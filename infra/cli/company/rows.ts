/** Reads and removes the rows of one company. Scans the whole table, to find also rows of a kind that a later release adds. */
import { setTimeout as sleep } from "node:timers/promises";
import { type DynamoDBDocumentClient, paginateScan, type ScanCommandInput } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { wholeNumber } from "../command/accepted.ts";

export interface RowStore {
  readonly client: DynamoDBDocumentClient;
  readonly tableName: string;
  readonly table: Table;
  readonly reads: Pace;
  readonly writes: Pace;
}

/** Default read units per second, for all segments of a scan together. A partition allows 3 000, so at least a third remain for users. */
const READ_UNITS = 2_000;
/** Default write units per second. A partition allows 1 000, so at least half of them remain for users. */
const WRITE_UNITS = 500;
const Units = wholeNumber(1, 999_999);

export const unitsInput = {
  "read-units": z._default(Units, READ_UNITS),
  "write-units": z._default(Units, WRITE_UNITS),
};
export const unitsUsage = `    [--read-units N, --write-units N]   maximum capacity units of the table per second (default ${READ_UNITS}, ${WRITE_UNITS})`;

export const SEGMENTS = 4;

/** Limits the units that a command consumes per second, so that enough of the table's capacity remains for users. */
export class Pace {
  readonly #unitsPerSecond: number;
  readonly #wait: (ms: number) => Promise<unknown>;
  #paidAt = 0;

  constructor(unitsPerSecond: number, wait: (ms: number) => Promise<unknown> = sleep) {
    this.#unitsPerSecond = unitsPerSecond;
    this.#wait = wait;
  }

  /** Waits until the average consumption is within the limit again after a call that has consumed these units. */
  async pay(units: number): Promise<void> {
    this.#paidAt = Math.max(this.#paidAt, Date.now()) + (units * 1_000) / this.#unitsPerSecond;
    const early = this.#paidAt - Date.now();
    if (early >= 1) await this.#wait(early);
  }
}

/** Returns a function that opens a table. The limits apply to all opened tables together. */
export function storesAt(
  client: DynamoDBDocumentClient,
  limits: { readonly "read-units": number; readonly "write-units": number },
) {
  const [reads, writes] = [new Pace(limits["read-units"]), new Pace(limits["write-units"])];
  return (tableName: string): RowStore => ({ client, tableName, table: openTable(tableName, client), reads, writes });
}

const StoredKey = z.object({ pk: z.string(), sk: z.string() });
export const keyOfRow = (row: Item): Key => StoredKey.parse(row);

export interface Page {
  readonly rows: readonly Item[];
  /** The position at which a later scan can continue. Undefined after the last page. */
  readonly next: Item | undefined;
}

/** By default, the scan reads the whole table. */
export interface Scan {
  readonly segment?: number;
  readonly segments?: number;
  readonly from?: Item | undefined;
  readonly keysOnly?: boolean;
}

/**
 * Returns the filter for the rows of a company. Most partition keys begin with the company's id. For keys that begin with a subject, a
 * service account, a session or an e-mail address, the filter compares `companyId` or the sort key.
 */
const ofCompany = (companyId: number) => ({
  FilterExpression:
    "begins_with(pk, :company) OR ((begins_with(pk, :subject) OR begins_with(pk, :keys) OR begins_with(pk, :session) OR begins_with(pk, :email)) AND (companyId = :id OR sk = :address))",
  ExpressionAttributeValues: {
    ":company": `C#${companyId}#`,
    ":subject": "S#",
    ":keys": "K#",
    ":session": "SE#",
    ":email": "E#",
    ":id": companyId,
    ":address": `COMPANY#${companyId}`,
  },
});

/**
 * Yields the rows of a company in pages, each from at most one megabyte of the table. The next page is read before the current one is
 * yielded, because the local DynamoDB server cannot continue a scan after a row that the caller has removed.
 */
export async function* companyPages(
  store: RowStore,
  companyId: number,
  { segment = 0, segments = 1, from, keysOnly = false }: Scan = {},
): AsyncGenerator<Page> {
  let page: Page | undefined;
  const pages = scanned(store, {
    ...ofCompany(companyId),
    Segment: segment,
    TotalSegments: segments,
    ConsistentRead: true,
    ...(keysOnly && {
      ProjectionExpression: "pk, sk, #type",
      ExpressionAttributeNames: { "#type": "type" },
    }),
    ExclusiveStartKey: from,
  });
  for await (const next of pages) {
    if (page !== undefined) yield page;
    page = next;
  }
  if (page !== undefined) yield page;
}

export async function* scanned(
  { client, tableName, reads }: Pick<RowStore, "client" | "tableName" | "reads">,
  input: Omit<ScanCommandInput, "TableName">,
): AsyncGenerator<Page> {
  const asked = { ...input, TableName: tableName, ReturnConsumedCapacity: "TOTAL" } as const;
  for await (const { Items: rows = [], LastEvaluatedKey: next, ConsumedCapacity } of paginateScan({ client }, asked)) {
    yield { rows, next };
    await reads.pay(ConsumedCapacity?.CapacityUnits ?? 0);
  }
}

async function eachPage(
  store: RowStore,
  companyId: number,
  work: (rows: readonly Item[]) => Promise<void>,
): Promise<void> {
  const scan = async (segment: number): Promise<void> => {
    const pages = companyPages(store, companyId, { segment, segments: SEGMENTS, keysOnly: true });
    for await (const { rows } of pages) await work(rows);
  };
  await Promise.all(Array.from({ length: SEGMENTS }, (_, segment) => scan(segment)));
}

export async function countRows(store: RowStore, companyId: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  await eachPage(store, companyId, async (rows) => {
    for (const row of rows) counts[typeOf(row)] = (counts[typeOf(row)] ?? 0) + 1;
  });
  return counts;
}

/** Returns the type of a row, or `other` for a row that only reserves a value or refers to another row. */
export const typeOf = ({ type }: Item): string => (typeof type === "string" ? type : "other");

export async function removeRows(
  store: RowStore,
  companyId: number,
  kept: (key: Key) => boolean,
  progress: (rows: number) => void = () => undefined,
): Promise<number> {
  let removed = 0;
  await eachPage(store, companyId, async (rows) => {
    const keys = rows.map(keyOfRow).filter((key) => !kept(key));
    await removeKeys(store, keys);
    removed += keys.length;
    progress(removed);
  });
  return removed;
}

/** The maximum number of rows that DynamoDB accepts in a batch of writes. */
const ROWS_TOGETHER = 25;

export const groupsOf = <T>(items: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / ROWS_TOGETHER) }, (_, group) =>
    items.slice(group * ROWS_TOGETHER, (group + 1) * ROWS_TOGETHER),
  );

export const textOf = ({ pk, sk }: Item | Key): string => `${pk} ${sk}`;

async function inGroups<T>(
  { reads, writes }: RowStore,
  items: readonly T[],
  work: (group: readonly T[]) => Promise<void>,
): Promise<void> {
  for (const group of groupsOf(items)) {
    const { usage } = await metered(() => work(group));
    await reads.pay(usage.readUnits);
    await writes.pay(usage.writeUnits);
  }
}

/** Reads the rows with these keys. Returns a map from `textOf` of each key to its row. */
export async function byKey(store: RowStore, keys: readonly Key[]): Promise<Map<string, Item>> {
  const found = new Map<string, Item>();
  await inGroups(store, keys, async (group) => {
    for (const item of await store.table.batchGet(group)) found.set(textOf(item), item);
  });
  return found;
}

export const removeKeys = (store: RowStore, keys: readonly Key[]): Promise<void> =>
  inGroups(store, keys, (group) => store.table.batchRemove(group));

export const putRows = (store: RowStore, rows: readonly (Key & Item)[]): Promise<void> =>
  inGroups(store, rows, (group) => store.table.batchPut(group));
