/** Tests the prospects that lists keep in memory: lists show the current state, read only what has changed, and use bounded memory. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { openRecentRows } from "#shared/prospects/list/recent-rows.ts";
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

test("memory never exceeds its limits, and never returns an older version than asked for", () => {
  const Step = fc.record({
    company: fc.nat(4),
    id: fc.integer({ min: 1, max: 7 }),
    version: fc.integer({ min: 1, max: 4 }),
    text: fc.nat(3_000),
    keep: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(Step, { maxLength: 200 }), (steps) => {
      const [companyBytes, totalBytes] = [10_000, 25_000];
      const all = openRecentRows(companyBytes, totalBytes);
      const newest = new Map<string, number>();
      for (const { company, id, version, text, keep } of steps) {
        const rows = all.ofCompany(company, 1);
        const name = `${company} ${id}`;
        if (keep) {
          rows.keep(prospectRow({ id, version }), text);
          newest.set(name, Math.max(version, newest.get(name) ?? 0));
        } else {
          const found = rows.get({ id, version });
          if (found !== undefined) {
            expect(found.id).toBe(id);
            expect(found.version).toBeGreaterThanOrEqual(version);
            expect(found.version).toBeLessThanOrEqual(newest.get(name) ?? 0);
          }
        }
        expect(rows.bytes).toBeLessThanOrEqual(companyBytes);
        expect(all.bytes()).toBeLessThanOrEqual(totalBytes);
      }
    }),
  );
});
