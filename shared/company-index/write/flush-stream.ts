/**
 * Starts flushes. Stream records of the table show which companies have new entries in their search indexes. A flush (see flush.ts) moves
 * the entries of one company into its stored index.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { DELTA_TYPE, weightOf } from "#shared/company-index/delta.ts";
import { FLUSH_ENTRIES, flush, OLD_MS } from "#shared/company-index/write/flush.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals, type Item, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed, failedAt } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/** The `type` attribute of a flush request: the row that makes the sweeper start a flush of a company at a later time. */
const FLUSH_REQUEST_TYPE = "flushRequest";

/** The types of the stream records that start flushes: entries of the search index, and flush requests. */
export const flushTypes = [DELTA_TYPE, FLUSH_REQUEST_TYPE] as const;

/**
 * Handles a batch of stream records: adds up the weights of each company's new entries, and flushes the companies with enough of them, and
 * those whose flush request was released. If entries are left, requests a flush for the time at which they are old.
 *
 * A warm function remembers the weight of the entries since a company's last flush. A cold function does not know it, so it tries a flush
 * at the company's first record. If the flush of one company fails, the other companies are still flushed, and the failures are reported at
 * the end. Lambda then repeats the records.
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
    // A request exists until its time has come. The flush that it starts then also moves the entries that were added meanwhile.
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
        failed.push(records[0]?.dynamodb?.SequenceNumber ?? "");
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** What a warm function knows about a company. */
interface Known {
  /** The weight of the entries since the last flush. */
  readonly weight: number;
  /** The time of the last flush request that the function has made, in milliseconds since 1970. */
  readonly requestedAt: number;
}

/** The unknown weight is assumed to be so large that the function tries a flush, which reads the true weight. */
const nothingKnown: Known = { weight: FLUSH_ENTRIES, requestedAt: 0 };

const isRequest = ({ type }: Item): boolean => type === FLUSH_REQUEST_TYPE;

/** Returns false for a flush request whose time has not come. */
const concernsFlush = ({ dynamodb }: DynamoDBRecord): boolean =>
  flushedKey.test(dynamodb?.Keys?.pk?.S ?? "") && dynamodb?.NewImage?.dueShard === undefined;

/** The partition key of an entry or of a flush request. */
const flushedKey = /^C#(\d+)#XF?$/;

function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = flushedKey.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined) throw new Error("the stream record belongs neither to an entry nor to a flush request");
  return Number(companyId);
}

/**
 * Requests a flush at the time `at`, in milliseconds since 1970, unless there is a request already. Returns the time of the request.
 * Without it, the entries of a company that writes nothing more would stay unflushed.
 */
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

/**
 * Maximum number of flush requests that one sweep handles, those with the oldest entries first. The next sweep, a minute later, handles the
 * others. The number is small, because a flush takes about half a second, and a shard of the table's stream flushes one company after the
 * other.
 */
const REQUESTS_PER_SWEEP = 50;

/**
 * Releases the flush requests whose time has come: removes their time. The stream record of this change starts the flush. Because the flush
 * begins after the release, it sees each entry for which the request has been enough. Returns the number of released requests.
 */
export async function sweepFlushRequests({ table, clock }: IndexContext): Promise<number> {
  const due: z.infer<typeof Request>[] = [];
  const query = { pk: keys.flushShard, index: "due", upTo: iso(clock.now()), limit: REQUESTS_PER_SWEEP } as const;
  for await (const item of table.query(query)) due.push(Request.parse(item));
  const results = await Promise.all(due.map((request) => release(table, request)));
  return results.filter(Boolean).length;
}

/** Returns false if the request was released by another sweep since it was read. */
async function release(table: Table, { pk, sk, dueAt }: z.infer<typeof Request>): Promise<boolean> {
  const change = { remove: ["dueShard", "dueAt"] };
  try {
    await table.write({ update: { pk, sk }, change, when: equals("dueAt", dueAt) });
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}
