/** Tests that the checks of a new note use the prospect's state at the time of the write, and not that of an earlier read. */
import { expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { interrupted } from "../harness/killable.ts";
import { createNote, createProspect, updateProspect } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

async function stage() {
  const context = warmFunction(db, { now: () => Date.now() });
  const { caller, repId } = await newCompany(context);
  const { id } = await createProspect(context, caller, {});
  return { context, caller, repId, id };
}

test("a note on a prospect whose import is not completed is refused", async () => {
  const { context, caller, id } = await stage();
  const { companyId } = caller;
  await context.table.batchPut([{ ...keys.import(companyId, 77), type: "import", state: "running" }]);
  await context.table.write({ update: keys.prospect(companyId, id), change: { set: { importId: "77" } } });
  await expect(createNote(context, caller, id, { body: "early" })).rejects.toMatchObject({ code: "not_found" });
});

test("the index entry of a note names no assignee who has lost the prospect meanwhile", async () => {
  const { context, caller, repId, id } = await stage();
  const reassign = () => updateProspect(context, caller, id, { assignedToUserId: repId });
  const table = interrupted(context.table, "transact", reassign);
  const { id: noteId } = await createNote(contextOn(table), caller, id, { body: "n" });
  const entry = await context.table.get(keys.noteDelta(caller.companyId, id, noteId, 1));
  expect(entry).toMatchObject({ type: expect.any(String) });
  expect(entry).not.toHaveProperty("assignee");
});
