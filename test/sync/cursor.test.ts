/** Tests the encryption of the cursors of `GET /api/changes`. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { createProspect } from "#shared/prospects/write.ts";
import { NotSealed } from "#shared/secrets/secrets.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const PURPOSE = "sync-cursors";
const placeOf = ({ companyId, userId }: Caller) => ({ pk: `C#${companyId}#CURSOR`, sk: `U#${userId}` });
const bytesOf = (cursor: string): Buffer => Buffer.from(cursor, "base64url");

async function newFeed() {
  const context = warmFunction(db, { now: () => Date.now() });
  const owner = await newOwner(context);
  const pull = (cursor: string | undefined) => readChanges(context, owner, { limit: 500, types: undefined, cursor });
  const { cursor: first } = await pull(undefined);
  const { cursor } = await pull(first);
  const { id } = await createProspect(context, owner, { name: "A" });
  return { context, owner, pull, cursor, id };
}

/** Returns the cursor in the form of earlier versions of the service, in which cursors and webhook secrets had the same data key. */
async function former({ context: { secrets }, owner, cursor }: Awaited<ReturnType<typeof newFeed>>): Promise<string> {
  const text = await secrets.open(owner.companyId, placeOf(owner), bytesOf(cursor).subarray(1), PURPOSE);
  return Buffer.from(await secrets.seal(owner.companyId, placeOf(owner), text)).toString("base64url");
}

test("a cursor from before cursors had a data key of their own continues, and the next one has the new key", async () => {
  const feed = await newFeed();
  const { items, phase, cursor } = await feed.pull(await former(feed));
  expect([phase, items.map(({ id, op }) => [id, op])]).toEqual(["changes", [[feed.id, "upsert"]]]);
  const { context, owner } = feed;
  await context.secrets.open(owner.companyId, placeOf(owner), bytesOf(cursor).subarray(1), PURPOSE);
  expect((await feed.pull(cursor)).items).toEqual([]);
});

test("the data key of webhook secrets decrypts no cursor, and the first byte does not choose another key", async () => {
  const feed = await newFeed();
  const { context, owner, cursor } = feed;
  const own = bytesOf(cursor);
  await expect(context.secrets.open(owner.companyId, placeOf(owner), own.subarray(1))).rejects.toThrow(NotSealed);
  const old = bytesOf(await former(feed));
  for (const wrong of [own.subarray(1), Buffer.concat([own.subarray(0, 1), old]), Buffer.alloc(0)]) {
    await expect(feed.pull(wrong.toString("base64url"))).rejects.toMatchObject({ code: "validation_failed" });
  }
});
