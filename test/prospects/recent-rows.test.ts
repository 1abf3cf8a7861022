/** Tests the prospects that lists keep in memory: lists show the current state, read only what has changed, and use bounded memory. */
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { COMPANY_BYTES, keptBytes, recentRows, TOTAL_BYTES } from "#shared/prospects/list/page-rows.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { createProspect, updateProspect } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const clock = { ms: Date.parse("2030-01-01T00:00:00.000Z"), now: () => clock.ms };
const newFunction = (): ApiContext => warmFunction(db, clock);
const list = (context: ApiContext, caller: Caller, query: Record<string, string> = {}) =>
  listProspects(context, caller, ListQuery.parse(query));

describe("a list in a warm function", () => {
  test("reads only the prospects that have changed since an earlier list", async () => {
    const [warm, others] = [newFunction(), newFunction()];
    const { caller } = await newCompany(others);
    const ids: number[] = [];
    for (let i = 0; i < 30; i++) ids.push((await createProspect(others, caller, { name: `n${i}` })).id);
    const first = await list(warm, caller);
    const again = await metered(() => list(warm, caller));
    expect(again.result).toEqual(first);
    expect(again.usage.rounds).toBe(1);
    await updateProspect(others, caller, ids[7] ?? 0, { name: "changed" });
    const changed = await metered(() => list(warm, caller));
    expect(changed.usage.rounds).toBe(2);
    expect(changed.usage.readUnits - again.usage.readUnits).toBeLessThanOrEqual(1);
    expect(changed.result.items.filter(({ name }) => name === "changed").map(({ id }) => id)).toEqual([ids[7]]);
  });
});

test("one company never takes more than its part of the memory, and a change of names empties it", () => {
  const table = {};
  const idsIn = (companyId: number, namesVersion = 1): number => {
    const rows = recentRows(table, companyId, namesVersion);
    expect(rows.bytes).toBeLessThanOrEqual(COMPANY_BYTES);
    return Array.from({ length: 100 }, (_, id) => rows.get(id)).filter((kept) => kept !== undefined).length;
  };
  const textBytes = COMPANY_BYTES / 100;
  for (let companyId = 1; companyId <= 12; companyId++) {
    const rows = recentRows(table, companyId, 1);
    for (let id = 1; id <= 60; id++) rows.set(id, 1, { row: prospectRow({ id, version: 1 }), textBytes });
  }
  const found = Array.from({ length: 12 }, (_, i) => idsIn(i + 1));
  expect(found.filter((count) => count > 0).length).toBeLessThanOrEqual(TOTAL_BYTES / COMPANY_BYTES);
  expect(found.at(-1)).toBe(Math.floor(COMPANY_BYTES / keptBytes(textBytes)));
  expect(idsIn(12, 2)).toBe(0);
});
