/** Tests that a client that was offline during very many changes reaches the end of the change log with requests of limited cost. */
import { expect, test } from "vitest";
import { type Change, chunkWrites, logAfter } from "#shared/company-index/change-log.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { type Head, moveHead } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect, updateProspect } from "../harness/verbs.ts";
import type { Stage } from "./changes-law.ts";
import { feedOf } from "./feed.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const all = { least: 1, settleMs: 0 };
/** The usual number of changes in a chunk: a flush usually starts when there are this many new entries. */
const PER_CHUNK = 64;

/** Adds chunks (rows) to the change log. They contain changes of prospects that no rep of the test company sees. */
async function addChunks({ context, owner }: Stage, chunks: number, perChunk: number): Promise<void> {
  const { head } = await readUnflushed(context.table, owner.companyId);
  const nobody = 2 ** 40;
  let last: Head = head;
  let made = 0;
  const changes = (): Change[] =>
    Array.from({ length: perChunk }, () => {
      // The changed prospects are spread over 100 000 ids, and are assigned to 40 users.
      const id = nobody + ((++made * 7_919) % 100_003);
      const assignee = nobody + (made % 40);
      const state = { isDeleted: false, isRestored: false };
      return { kind: "prospect", id, version: 1 + (made % 30), before: assignee, after: assignee, ...state };
    });
  const rows = [];
  for (let i = 0; i < chunks; i++) {
    rows.push(...chunkWrites(owner.companyId, last, { changes: changes() }, context.clock.now()));
    last = { ...last, version: last.version + 1, ...logAfter(last, true) };
  }
  await context.table.batchPut(rows.flatMap((write) => ("put" in write ? [write.put] : [])));
  await moveHead(context.table, owner.companyId, head, last);
}

async function away(chunks: number, perChunk: number) {
  const stage = await newStage(db);
  const { context, owner, reps } = stage;
  const [rep = expect.fail()] = reps;
  const { id } = await createProspect(context, owner, { name: "A", assignedToUserId: rep.userId });
  await flush(context, owner.companyId, all);
  const { pull, pagesUntil } = feedOf(context, rep, { types: ["prospects"] });
  await pull();
  await addChunks(stage, chunks, perChunk);
  await updateProspect(context, owner, id, { name: "B" });
  await flush(context, owner.companyId, all);
  const pages = await pagesUntil(({ hasMore }) => !hasMore);
  const items = pages.flatMap((page) => page.items.map((item) => [item.id, item.version, item.op]));
  return { id, pages, items };
}

test("a rep who was away during 150 000 changes of others reads them with three requests of limited cost", async () => {
  const { id, pages, items } = await away(2_400, PER_CHUNK);
  expect(items).toEqual([[id, shownVersion(2), "upsert"]]);
  expect(pages.length).toBe(3);
  for (const { units, requests } of pages) {
    expect(units).toBeLessThan(90);
    expect(requests).toBeLessThanOrEqual(10);
  }
});

test("a request reads at most about 100 000 changes, also if each flush has moved thousands", async () => {
  const { id, pages, items } = await away(30, 8_000);
  expect(items).toEqual([[id, shownVersion(2), "upsert"]]);
  expect(pages.length).toBe(3);
});
