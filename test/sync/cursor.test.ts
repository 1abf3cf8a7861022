/** Tests the cursors of `GET /api/changes`: they are encrypted with a separate data key, and a restore of the table makes them invalid. */
import { expect, test, vi } from "vitest";
import { NotSealed } from "#shared/secrets/secrets.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { createProspect } from "../harness/verbs.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";
import { feedOf } from "./feed.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();

test("cursors have a data key of their own: that of webhook secrets decrypts no cursor, and makes none", async () => {
  const context = warmFunction(db, { now: () => Date.now() });
  const owner = await newOwner(context);
  const pull = (cursor?: string) => feedOf(context, owner, { cursor }).pull();
  const { cursor } = await pull();
  expect((await pull(cursor)).items).toEqual([]);
  const place = { pk: `C#${owner.companyId}#CURSOR`, sk: `U#${owner.userId}` };
  const bytes = Buffer.from(cursor, "base64url");
  await expect(context.secrets.open(owner.companyId, place, bytes)).rejects.toThrow(NotSealed);
  const text = await context.secrets.open(owner.companyId, place, bytes, "sync-cursors");
  const other = await context.secrets.seal(owner.companyId, place, text);
  for (const wrong of [other, bytes.subarray(1), Buffer.alloc(0)]) {
    const sent = Buffer.from(wrong).toString("base64url");
    await expect(pull(sent)).rejects.toMatchObject({ code: "validation_failed" });
  }
});

test("a cursor from before the restore of the whole table must begin anew", async () => {
  const { context, owner } = await newStage(db);
  await createProspect(context, owner, { name: "Ann" });
  const pull = (cursor?: string) => feedOf(context, owner, { cursor }).pull();
  vi.stubEnv("TABLE_NAME", "Canvassing");
  const { cursor } = await pull();
  expect((await pull(cursor)).phase).toBe("changes");
  vi.stubEnv("TABLE_NAME", "Canvassing-restored");
  await expect(pull(cursor)).rejects.toMatchObject({ code: "sync_reset_required" });
  vi.unstubAllEnvs();
});
