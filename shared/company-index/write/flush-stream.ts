/** Handles the table's stream: starts flushes of the companies that have new delta entries. */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { iso } from "#shared/clock.ts";
import { DELTA_TYPE, weightOf } from "#shared/company-index/delta.ts";
import { FLUSH_ENTRIES, flush, OLD_MS } from "#shared/company-index/write/flush.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals, type Item, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import type { Table } from "#shared/db/table.ts";
import { conditionHolds, failedAt } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

const FLUSH_REQUEST_TYPE = "flushRequest";

export const flushTypes = [DELTA_TYPE, FLUSH_REQUEST_TYPE] as const;

/**
 * Flushes the companies with enough new entries. If entries are left, writes a flush request. The sweeper releases it when it is due, and
 * the stream record of the release starts the flush. A cold function does not know the weight of the unflushed entries, so it tries a flush
 * at a company's first record. After a failure, it flushes the other companies. Lambda repeats the failed records.
 */
export function flushStream(
  context: () => IndexContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const companies = new Map<number, Known>();
  async function handle(companyId: number, records: readonly DynamoDBRecord[]): Promise<void> {
    const { table, clock } = context();
    const images = records.map(({ dynamodb }) => itemOfImage(dynamodb?.NewImage ?? {}));
    const whenOld = images.some(isRequest);
    const known = companies.get(companyId) ?? nothingKnown;
    let weight = images.reduce((sum, image) => sum + (isRequest(image) ? 0 : weightOf(image)), known.weight);
    let oldAt = clock.now() + OLD_MS;
    companies.set(companyId, { ...known, weight });
    if (whenOld || weight >= FLUSH_ENTRIES) {
      const { left, youngUntil, ...done } = await flush(context(), companyId, { whenOld });
      weight = left;
      if (youngUntil > clock.now()) oldAt = youngUntil;
      if (done.entries > 0) log.info("index flushed", done);
    }
    // A pending request suffices: its flush will also move the entries that are added until then.
    const isRequested = !whenOld && known.requestedAt > clock.now();
    const requestedAt = weight === 0 || isRequested ? known.requestedAt : await requestFlush(table, companyId, oldAt);
    companies.set(companyId, { weight, requestedAt });
  }
  return async ({ Records }) => {
    const failed: string[] = [];
    for (const [companyId, records] of Map.groupBy(Records.filter(concernsFlush), companyOf)) {
      try {
        await withLogContext({ companyId }, () => handle(companyId, records));
      } catch (error) {
        log.error("index not flushed", { companyId, ...errorFields(error) });
        failed.push(String(at(records, 0).dynamodb?.SequenceNumber));
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

interface Known {
  readonly weight: number;
  /** The due time of the newest known flush request in milliseconds since 1970, or 0. */
  readonly requestedAt: number;
}

/** An unknown weight counts as enough for a flush, which reads the true weight. */
const nothingKnown: Known = { weight: FLUSH_ENTRIES, requestedAt: 0 };

const isRequest = ({ type }: Item): boolean => type === FLUSH_REQUEST_TYPE;

/** True for a new entry, and for a flush request that was released. */
const concernsFlush = ({ dynamodb }: DynamoDBRecord): boolean =>
  flushedKey.test(String(dynamodb?.Keys?.pk?.S)) && dynamodb?.NewImage?.dueShard === undefined;

const flushedKey = /^C#(\d+)#XF?$/;

function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = flushedKey.exec(String(dynamodb?.Keys?.pk?.S)) ?? [];
  if (companyId === undefined) throw new Error("the stream record belongs neither to an entry nor to a flush request");
  return Number(companyId);
}

/** Returns the due time of the request. Without a request, the entries of a company that stops writing would stay unflushed. */
async function requestFlush(table: Table, companyId: number, at: number): Promise<number> {
  const row = { ...keys.flushRequest(companyId), type: FLUSH_REQUEST_TYPE, dueShard: keys.flushShard, dueAt: iso(at) };
  try {
    await table.write({ put: row, when: missing("dueAt") });
    return at;
  } catch (error) {
    const existing = failedAt(error, 0)?.item;
    if (existing === undefined) throw error;
    return Date.parse(Request.parse(existing).dueAt);
  }
}

const Request = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/** Maximum number of requests that one sweep releases, because a shard of the stream flushes one company after the other. */
const REQUESTS_PER_SWEEP = 50;

/** Releases due requests, the oldest first. The stream record of a release starts a flush, which sees all entries written before. */
export async function sweepFlushRequests({ table, clock }: IndexContext): Promise<number> {
  const due: z.infer<typeof Request>[] = [];
  const query = { pk: keys.flushShard, index: "due", upTo: iso(clock.now()), limit: REQUESTS_PER_SWEEP } as const;
  for await (const item of table.query(query)) due.push(Request.parse(item));
  const results = await Promise.all(due.map((request) => release(table, request)));
  return results.filter(Boolean).length;
}

/** Returns false if another sweep has released the request since it was read. */
function release(table: Table, { pk, sk, dueAt }: z.infer<typeof Request>): Promise<boolean> {
  const change = { remove: ["dueShard", "dueAt"] };
  return conditionHolds(table.write({ update: { pk, sk }, change, when: equals("dueAt", dueAt) }));
}
