/** Tests a refresh of a console session that competes with another refresh or with a sign-out. */
import { expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { digestOf } from "#shared/sessions/session-id.ts";
import { endSession } from "#shared/sessions/sessions.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { interrupted } from "../harness/killable.ts";
import { sessionAt } from "../harness/token-issuer.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

/** Creates a session whose access token expires soon. */
async function session() {
  const context = warmFunction(db, { now: () => Date.now() });
  const at = await sessionAt(context, await newOwner(context), Date.now());
  return Object.assign(at, { row: () => context.table.get(keys.session(digestOf(at.id))) });
}
const refused = { code: "unauthenticated" };

test("of concurrent refreshes, one asks the issuer, and the others wait for it", async () => {
  const at = await session();
  const all = await Promise.all([1, 2, 3].map(() => at.refresh()));
  expect(all.filter(({ id }) => id !== undefined)).toHaveLength(1);
  expect(at.asked).toBe(1);
});

test("a refresh that writes after a later refresh does not ask the issuer", async () => {
  const at = await session();
  const table = interrupted(at.context.table, "write", () => at.refresh());
  expect(await at.refresh(table)).toEqual({ id: undefined });
  expect(at.asked).toBe(1);
});

test.each([
  ["begins", "write", 0],
  ["ends", "transact", 1],
] as const)("a sign-out just before a refresh %s ends the session", async (_, call, asked) => {
  const at = await session();
  const table = interrupted(at.context.table, call, () => endSession(at.context, at.id));
  await expect(at.refresh(table)).rejects.toMatchObject(refused);
  expect([at.asked, await at.row()]).toEqual([asked, undefined]);
});

test("a sign-out while the issuer fails leaves no row", async () => {
  const at = await session();
  at.issuer.answer = async () => {
    await endSession(at.context, at.id);
    return undefined;
  };
  await expect(at.refresh()).rejects.toThrow();
  expect(await at.row()).toBeUndefined();
});
