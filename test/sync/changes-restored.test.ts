/** Tests that a cursor of `GET /api/changes` is not valid after the restore of the whole table. */
import { expect, test, vi } from "vitest";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect } from "../harness/verbs.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();

test("a cursor from before the restore of the whole table must begin anew", async () => {
  const { context, owner } = await newStage(db);
  await createProspect(context, owner, { name: "Ann" });
  const pull = (cursor?: string) => readChanges(context, owner, { limit: 500, types: undefined, cursor });
  vi.stubEnv("TABLE_NAME", "Canvassing");
  const { cursor } = await pull();
  expect((await pull(cursor)).phase).toBe("changes");
  vi.stubEnv("TABLE_NAME", "Canvassing-restored");
  await expect(pull(cursor)).rejects.toMatchObject({ code: "sync_reset_required" });
  vi.unstubAllEnvs();
});
