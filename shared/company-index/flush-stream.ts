/** Owns a batch of stream records: weighs each company's new entries, and flushes those that have enough of them. */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from "aws-lambda";
import { weightOf } from "#shared/company-index/delta.ts";
import { FLUSH_ENTRIES, flush } from "#shared/company-index/flush.ts";
import type { IndexContext } from "#shared/company-index/publish.ts";
import { itemOfImage } from "#shared/db/stream-image.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/**
 * A warm function remembers how many entries have come since its last flush, so that it looks into the table only when there is
 * something to do. What a cold one has missed it finds at its first look. A company whose flush failed holds up no other one:
 * its first record is reported after all had their turn.
 */
export function flushStream(
  context: () => IndexContext,
): (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse> {
  const waiting = new Map<number, number>();
  return async ({ Records }) => {
    const companies = Map.groupBy(Records, companyOf);
    const failed: string[] = [];
    for (const [companyId, records] of companies) {
      const added = records.reduce(
        (weight, { dynamodb }) =>
          weight + weightOf(dynamodb?.NewImage === undefined ? {} : itemOfImage(dynamodb.NewImage)),
        0,
      );
      const entries = (waiting.get(companyId) ?? FLUSH_ENTRIES) + added;
      waiting.set(companyId, entries);
      if (entries < FLUSH_ENTRIES) continue;
      try {
        waiting.set(companyId, await withLogContext({ companyId }, () => flushCompany(context(), companyId)));
      } catch (error) {
        log.error("index not flushed", { companyId, ...errorFields(error) });
        failed.push(records[0]?.dynamodb?.SequenceNumber ?? "");
      }
    }
    return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** Gives the weight of the entries that are left. */
async function flushCompany(context: IndexContext, companyId: number): Promise<number> {
  const { left, ...done } = await flush(context, companyId);
  if (done.entries > 0) log.info("index flushed", done);
  return left;
}

/** The partition of the entry is `C#<company>#X`. */
function companyOf({ dynamodb }: DynamoDBRecord): number {
  const [, companyId] = /^C#(\d+)#X$/.exec(dynamodb?.Keys?.pk?.S ?? "") ?? [];
  if (companyId === undefined) throw new Error("a record is no entry of an index");
  return Number(companyId);
}
