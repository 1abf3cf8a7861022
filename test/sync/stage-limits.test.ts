/** Tests the maximum number of reads and of bytes of one page of `GET /api/changes`. */
import { expect, test } from "vitest";
import * as limits from "#shared/limits.ts";
import { PageItems, removal } from "#shared/sync/changes/items.ts";
import { MOST_READS, readStages, type Stage, StageReads } from "#shared/sync/changes/stages.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
/** Returns stages, which are the steps of the work of one page. Each of these stages needs one read and adds one item: a deleted tag. */
const deletions = (count: number): Stage[] =>
  Array.from({ length: count }, (_, i) => ({ type: "tags", only: { id: i + 1, version: 2, isDeleted: true } }));

test.each([MOST_READS - 1, MOST_READS, MOST_READS + 1, 3 * MOST_READS])(
  "of %i stages, no page makes more reads than the maximum, and the pages have each item once",
  async (count) => {
    const { context, owner } = await newStage(db);
    const reads = new StageReads({ context, caller: owner, types: ["tags"], nowMs: 0 });
    const pages: PageItems["items"][] = [];
    let from: Awaited<ReturnType<typeof readStages>> = { stage: 0, after: undefined };
    while (from !== undefined) {
      const page = new PageItems(500);
      from = await readStages(reads, deletions(count), from, page);
      pages.push(page.items);
    }
    const full = Array.from({ length: Math.floor(count / MOST_READS) }, () => MOST_READS);
    const rest = count % MOST_READS;
    expect(pages.map((items) => items.length)).toEqual(rest > 0 ? [...full, rest] : full);
    expect(pages.flat().map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
  },
);

test("a page with the longest cursor has at most the maximum number of bytes", () => {
  const page = new PageItems(Number.MAX_SAFE_INTEGER);
  let id = 0;
  while (page.add(removal("tags", ++id, 2, "deleted")));
  const cursor = "x".repeat(limits.changesCursor);
  const body = { phase: "snapshot", items: page.items, cursor, hasMore: true, total: Number.MAX_SAFE_INTEGER };
  expect(JSON.stringify(body).length).toBeLessThanOrEqual(limits.changesBytes);
  expect(JSON.stringify(body).length).toBeGreaterThan(limits.changesBytes - 2_000);
});
