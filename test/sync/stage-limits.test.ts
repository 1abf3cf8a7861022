/** Tests the maximum number of reads of one page of `GET /api/changes`. */
import { expect, test } from "vitest";
import { PageItems } from "#shared/sync/changes/items.ts";
import { StageReads } from "#shared/sync/changes/stage-reads.ts";
import { MOST_READS, readStages, type Stage } from "#shared/sync/changes/stages.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
/** A stage that needs one read and adds one item: the deletion of a tag. */
const deletions = (count: number): Stage[] =>
  Array.from({ length: count }, (_, i) => ({ type: "tags", only: { id: i + 1, version: 2, isDeleted: true } }));

test.each([MOST_READS - 1, MOST_READS, MOST_READS + 1, 3 * MOST_READS])(
  "of %i stages, no page makes more reads than the maximum, and the pages have each item once",
  async (count) => {
    const { context, owner } = await newStage(db);
    const reads = new StageReads({ context, caller: owner, nowMs: 0 }, ["tags"]);
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
