/**
 * Starts flushes. Stream records of the table show which companies have new entries in their search indexes. A flush (see flush.ts) moves
 * the entries of one company into its stored index.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { DELTA_TYPE } from "#shared/company-index/delta.ts";
import { type DeltaSize, deltaSizeOf } from "#shared/company-index/delta-size.ts";
import { FLUSH_ENTRIES, flush, hasDevices, isExpensive } from "#shared/company-index/write/flush.ts";
import type { IndexContext } from "#shared/company-index/write/publish.ts";
import { equals, type Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import type { Table } from "#shared/db/table.ts";
import { DATA_KEY_TYPE } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/** The `type` attribute of a flush request: a row that asks for a flush of a company at a later time. */
const FLUSH_REQUEST_TYPE = "flushRequest";

/**
 * The types of the stream records that start flushes: entries of the search index, flush requests, and data keys (encryption keys). When
 * the first device of a company reads `GET /api/changes`, the data key for the company's cursors is stored. From then on, a flush is
 * worthwhile earlier (see `hasDevices`).
 */
export const flushTypes = [DELTA_TYPE, DATA_KEY_TYPE, FLUSH_REQUEST_TYPE] as const;

/**
 * Handles a batch of stream records: adds up the sizes of each company's new entries, and flushes the companies with enough of them.
 *
 * A warm function remembers the size of the entries since a company's last flush. A cold function does not know it, so it tries a flush at
 * the company's first record. Every function tries a flush when the data key of the company's cursors is written, because the company then
 * has devices, and when the time of a flush request has come. If the flush of one company fails, the other companies are still flushed, and
 * the failures are reported at the end.
 */
export function flushStream(
  context: () => IndexContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const companies = new Map<number, Known>();
  async function isDue(companyId: number, { size, earlyFlushFrom, hasNoDevices }: Known): Promise<boolean> {
    if (size.weight >= FLUSH_ENTRIES) return true;
    const { table, clock } = context();
    if (!isExpensive(size)) return false;
    if (clock.now() >= earlyFlushFrom) return true;
    if (hasNoDevices) return false;
    if (await hasDevices(table, companyId)) return true;
    companies.set(companyId, { ...known(companyId), hasNoDevices: true });
    return false;
  }
  const known = (companyId: number): Known => companies.get(companyId) ?? nothingKnown;
  async function flushIfDue(companyId: number, records: readonly DynamoDBRecord[]): Promise<void> {
    const images = records.map(({ dynamodb }) => itemOfImage(dynamodb?.NewImage ?? {}));
    // A signal may be the flush request that the function has stored. The entries may then need another request.
    const before = images.some(isSignal) ? { ...known(companyId), size: UNKNOWN, requestedAt: 0 } : known(companyId);
    const entries = images.filter((image) => !isSignal(image));
    const size = sum(before.size, deltaSizeOf(entries));
    companies.set(companyId, { ...before, size });
    if (await isDue(companyId, known(companyId))) {
      const { left, earlyFlushFrom, ...done } = await flush(context(), companyId);
      companies.set(companyId, { ...known(companyId), size: left, earlyFlushFrom, hasNoDevices: false });
      if (done.entries > 0) log.info("index flushed", done);
    }
    await requestIfExpensive(companyId);
  }
  /** Requests a flush if the entries left are expensive to read, and no earlier request waits for its time. */
  async function requestIfExpensive(companyId: number): Promise<void> {
    const { size, earlyFlushFrom, requestedAt } = known(companyId);
    const { table, clock } = context();
    if (!isExpensive(size) || requestedAt > clock.now()) return;
    const at = Math.max(earlyFlushFrom, clock.now());
    await requestFlush(table, companyId, at);
    companies.set(companyId, { ...known(companyId), requestedAt: at });
  }
  return async ({ Records }) => {
    const failed: string[] = [];
    for (const [companyId, records] of Map.groupBy(Records.filter(concernsFlush), companyOf)) {
      try {
        await withLogContext({ companyId }, () => flushIfDue(companyId, records));
      } catch (error) {
        log.error("index not flushed", { companyId, ...errorFields(error) });
        failed.push(records[0]?.dynamodb?.SequenceNumber ?? "");
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** What a warm function knows about a company. All times are in milliseconds since 1970. */
interface Known {
  /** The size of the entries since the last flush. */
  readonly size: DeltaSize;
  /** Before this time, large entries are flushed only if the company has devices, or if their weight reaches `FLUSH_ENTRIES`. */
  readonly earlyFlushFrom: number;
  /** True if the function has looked for devices since its last attempt of a flush, and has found none. */
  readonly hasNoDevices: boolean;
  /** The time of the last flush request that the function has stored. */
  readonly requestedAt: number;
}

/** True for a row after whose write the function always attempts a flush. */
const isSignal = ({ type }: Item): boolean => type === DATA_KEY_TYPE || type === FLUSH_REQUEST_TYPE;

/** The assumed size if the true size is unknown. It is large enough that the function tries a flush, and the flush reads the true size. */
const UNKNOWN: DeltaSize = { weight: FLUSH_ENTRIES, bytes: 0 };
const nothingKnown: Known = { size: UNKNOWN, earlyFlushFrom: 0, hasNoDevices: false, requestedAt: 0 };

const sum = (a: DeltaSize, b: DeltaSize): DeltaSize => ({ weight: a.weight + b.weight, bytes: a.bytes + b.bytes });

/**
 * Returns false for data keys (encryption keys) of webhooks and of the console, because a flush needs only those of cursors. Also returns
 * false for a flush request whose time has not come.
 */
const concernsFlush = ({ dynamodb }: DynamoDBRecord): boolean =>
  flushedKey.test(dynamodb?.Keys?.pk?.S ?? "") && dynamodb?.NewImage?.dueShard === undefined;

/** The partition key of an entry, of a flush request, or of the data key of a company's cursors. */
const flushedKey = /^C#(\d+)#(?:X|XF|CK)$/;

function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = flushedKey.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined)
    throw new Error("the stream record belongs neither to an entry, nor to a flush request, nor to a data key");
  return Number(companyId);
}

/**
 * Stores a flush request: it asks for a flush at the time `at`, in milliseconds since 1970. Without it, the entries of a company that
 * writes nothing more would stay unflushed.
 */
const requestFlush = (table: Table, companyId: number, at: number): Promise<void> =>
  table.batchPut([
    { ...keys.flushRequest(companyId), type: FLUSH_REQUEST_TYPE, dueShard: keys.flushShard, dueAt: iso(at) },
  ]);

/**
 * Maximum number of flush requests that one sweep handles. The next sweep, a minute later, handles the others. The number is small, because
 * a flush takes about half a second, and a shard of the table's stream flushes one company after the other.
 */
const REQUESTS_PER_SWEEP = 50;

const Request = z.object({ pk: z.string(), sk: z.string(), dueAt: z.string() });

/**
 * Removes the time from the flush requests whose time has come. The stream record of this change starts the flush. Returns the number of
 * these requests.
 */
export async function sweepFlushRequests({ table, clock }: IndexContext): Promise<number> {
  const due: z.infer<typeof Request>[] = [];
  const query = { pk: keys.flushShard, index: "due", upTo: iso(clock.now()), limit: REQUESTS_PER_SWEEP } as const;
  for await (const item of table.query(query)) due.push(Request.parse(item));
  const results = await Promise.all(due.map((request) => release(table, request)));
  return results.filter(Boolean).length;
}

/** Removes the time from the request. Returns false if the request was made again or released since it was read. */
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
