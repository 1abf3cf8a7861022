/** Reads all prospects and notes of a company, and compares them with the company's search index. */
import { mapConcurrently } from "#shared/all-ended.ts";
import * as attachedKeys from "#shared/db/attached-keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { publishedBlocks } from "#shared/prospects/read.ts";
import { StoredNote, storedProspect } from "#shared/prospects/stored.ts";

const PARALLEL = 16;

export type CompanyProspects = Awaited<ReturnType<typeof readAllProspects>>;

/** Returns the prospects that are not deleted, and all notes, also those of deleted prospects, in any order. */
export async function readAllProspects(table: Table, companyId: number) {
  const blocks = await publishedBlocks(table, keys.prospectRanges(companyId));
  const read = (block: number) => Array.fromAsync(table.query(attachedKeys.prospectsAndNotes(companyId, block)));
  const items = (await mapConcurrently(blocks, PARALLEL, read)).flat();
  const live = items.filter(({ deletedAt }) => deletedAt === undefined);
  return {
    prospects: live.filter(({ type }) => type === "prospect").map(storedProspect),
    notes: live.filter(({ type }) => type === "note").map((item) => StoredNote.parse(item)),
  };
}

/** Returns each difference between a company's index and its prospects and notes, and each damaged part. Nobody may write meanwhile. */
export const checkIndex = async (table: Table, companyId: number): Promise<readonly string[]> =>
  (await verifyIndex(table, indexRecords(table), companyId, { pauseMs: 0 })).faults;
