/**
 * Tests the undo of a bulk deletion. When the search index merges its parts, it removes the notes of deleted prospects. The undo must bring
 * these notes back into the index.
 */
import { expect, test } from "vitest";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { readUnflushed } from "#shared/company-index/delta.ts";
import { readManifest } from "#shared/company-index/manifest.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { indexNotesAgain } from "#shared/prospects/bulk-write.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { readAllProspects } from "../harness/index-oracle.ts";
import { killPointsOf } from "../harness/kills.ts";
import { beginUndo, createNote, createProspect, updateNote } from "../harness/verbs.ts";
import { endOf, newJob, newStage, runOnce, type Stage, silent } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const COUNT = 2;
/** Number of notes. The undo needs several transactions for them, because one transaction writes at most 33 notes. */
const MANY = 60;
const untilEnded = (stage: Stage, job: JobMessage) => endOf(harness, now, stage, job);

/** Creates and flushes other prospects until the search index consists of one part. The index then has no trace of deleted prospects. */
async function mergeEverything({ caller }: Stage): Promise<void> {
  const context = harness.sound();
  for (let flushes = 0; flushes < 10; flushes++) {
    for (let i = 0; i < 10; i++) await createProspect(context, caller, { name: "other" });
    await flush(context, caller.companyId, { least: 1, settleMs: 0 });
    const { head } = await readUnflushed(context.table, caller.companyId);
    const { parts } = await readManifest(context.table, caller.companyId, head.manifest);
    // After the first flush, the only part may still contain the notes of the deleted prospects. The next merge removes them.
    if (flushes > 0 && parts.length === 1) return;
  }
  throw new Error("the parts were not merged");
}

const found = async ({ caller }: Stage, search: string): Promise<number[]> =>
  (await listProspects(harness.sound(), caller, ListQuery.parse({ search }))).items.map(({ id }) => id);

/** Creates prospects with notes, deletes them by a bulk job, and begins the undo of this job. */
async function deleted(): Promise<{ stage: Stage; undo: JobMessage; edited: number }> {
  const context = harness.sound();
  const stage = await newStage(harness, COUNT);
  const [first = 0, second = 0] = stage.ids;
  for (let i = 0; i < MANY; i++) await createNote(context, stage.caller, first, { body: `gutter w${i}` });
  const { id: edited } = await createNote(context, stage.caller, second, { body: `chimney ${"long ".repeat(200)}` });
  const job = await newJob(harness, stage, { delete: true });
  await untilEnded(stage, job);
  await mergeEverything(stage);
  const undo = await beginUndo(context, silent, stage.caller, job.id, {});
  return { stage, undo: { kind: "bulk", companyId: job.companyId, id: undo.id }, edited };
}

test("an undo that is killed before any transaction brings back all notes in its next run", {
  tags: ["sized"],
}, async () => {
  const counted = await deleted();
  let writes = 0;
  const isWrite = (operation: string): boolean => operation === "TransactWriteItems";
  db.plan((operation) => {
    if (isWrite(operation)) writes++;
    return pass;
  });
  await runOnce(harness.faulty(), counted.stage, counted.undo);
  for (const last of killPointsOf(writes, 0)) {
    const { stage, undo } = await deleted();
    let seen = 0;
    db.plan((operation) => {
      if (isWrite(operation)) seen++;
      return seen < last ? pass : serverError;
    });
    await runOnce(harness.faulty(), stage, undo);
    await untilEnded(stage, undo);
    expect([last, await found(stage, `w${MANY - 1}`)]).toEqual([last, [stage.ids[0]]]);
    expect([last, await found(stage, "chimney")]).toEqual([last, [stage.ids[1]]]);
  }
});

test("a note that a user changes while the notes are indexed again keeps the user's text, and the others are indexed too", async () => {
  const context = harness.sound();
  const { caller, ids } = await newStage(harness, 1);
  const [prospectId = 0] = ids;
  const mine = await createNote(context, caller, prospectId, { body: "chimney" });
  await createNote(context, caller, prospectId, { body: "gutter" });
  const meanwhile = () => updateNote(harness.sound(), caller, mine.id, { body: "skylight" });
  let isFirst = true;
  db.plan((operation) => {
    if (operation !== "TransactWriteItems" || !isFirst) return pass;
    isFirst = false;
    return { kind: "early", meanwhile };
  });
  await indexNotesAgain(harness.faulty().table, caller.companyId, prospectId);
  const { notes } = await readAllProspects(context.table, caller.companyId);
  expect(notes.map(({ body, version }) => [body, version]).toSorted()).toEqual([
    ["gutter", 2],
    ["skylight", 2],
  ]);
});
