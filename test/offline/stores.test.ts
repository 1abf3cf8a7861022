/** Tests that the store in IndexedDB behaves like the store in memory, and that each commit is written completely or not at all. */
import "fake-indexeddb/auto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Prospect } from "../../docs/client/api.ts";
import { indexedDbStore } from "../../docs/client/indexeddb-store.ts";
import { type Commit, type Entry, memoryStore, type Store, type StoredRecord } from "../../docs/client/store.ts";

let names = 0;
const newName = (): string => `stores-${names++}`;

const nothing = { phoneNumber: null, secondaryPhoneNumber: null, emailAddress: null, lat: null, lng: null };
const prospect = (id: number, name: string): Prospect => ({
  ...nothing,
  ...{ id, name, source: null, sourceId: null, sourceCreatedAt: null, customFieldData: null },
  ...{ createdAt: "2026-11-23T00:00:00.000Z", updatedAt: "2026-11-23T00:00:00.000Z" },
  ...{ address: null, currentStatus: null, assignedTo: null, tags: [], appointments: [] },
});
const record = fc
  .record({
    id: fc.integer({ min: 1, max: 4 }),
    version: fc.integer({ min: 1, max: 5 }),
    generation: fc.integer({ min: 0, max: 2 }),
    name: fc.string(),
  })
  .map(
    ({ name, ...rest }): StoredRecord => ({ ...rest, op: "upsert", type: "prospects", data: prospect(rest.id, name) }),
  );
const entry = fc.record(
  {
    position: fc.integer({ min: 1, max: 4 }),
    opId: fc.uuid(),
    operation: fc.record({ opId: fc.uuid(), type: fc.constant("note.create" as const), id: fc.nat() }),
    record: fc.constantFrom("prospect/1", "prospect/2"),
    raises: fc.array(fc.constantFrom("prospect/1", "appointment/1")),
    state: fc.constantFrom("waiting", "applied", "failed"),
  },
  { requiredKeys: ["opId", "operation", "record", "raises", "state"] },
);
const cursor = fc.constantFrom(null, "a", "b");
const commit = fc.record(
  {
    ifCursor: cursor,
    state: fc.record({ deviceId: fc.constant("d"), cursor, generation: fc.nat(2), clockOffsetMs: fc.nat() }),
    put: fc.uniqueArray(record, { maxLength: 4, selector: ({ id }) => id }),
    remove: fc.array(record, { maxLength: 2 }),
    removeBelow: fc.integer({ min: 0, max: 2 }),
    save: fc.array(entry, { maxLength: 3 }),
    drop: fc.array(entry, { maxLength: 2 }),
  },
  { requiredKeys: [] },
);

async function contentOf(store: Store) {
  const records = (await store.records("prospects")).toSorted((a, b) => a.id - b.id);
  return { state: await store.state(), records, outbox: await store.outbox() };
}

test("both stores contain the same after the same commits, also when the database is opened again", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(commit, { minLength: 1, maxLength: 12 }), async (commits) => {
      const name = newName();
      const memory = memoryStore();
      await memory.commit({ state: { deviceId: "d", cursor: null, generation: 0, clockOffsetMs: 0 } });
      await (await indexedDbStore(name)).commit({ state: await memory.state() });
      for (const one of commits) {
        const indexed = await indexedDbStore(name);
        expect(await indexed.commit(one)).toBe(await memory.commit(one));
        expect(await contentOf(indexed)).toEqual(await contentOf(memory));
        expect(await indexed.record("prospects", 1)).toEqual(await memory.record("prospects", 1));
      }
    }),
    { numRuns: 100 },
  );
});

test("a commit with a value that the browser cannot store changes nothing", async () => {
  const store = await indexedDbStore(newName());
  const before = await contentOf(store);
  const data = prospect(1, "kept");
  const kept = { op: "upsert", type: "prospects", id: 1, version: 1, generation: 0, data } as const;
  const unstorable = { ...data, customFieldData: { key: () => "a function cannot be stored" } };
  const broken: Commit = {
    state: { ...before.state, cursor: "next" },
    put: [kept, { ...kept, id: 2, data: unstorable }],
  };
  await expect(store.commit(broken)).rejects.toThrow();
  expect(await contentOf(store)).toEqual(before);
  expect(await store.commit({ put: [kept] })).toBe(true);
  expect(await store.record("prospects", 1)).toEqual(kept);
});

test("two tabs add operations at the same time, and each operation gets a position of its own", async () => {
  const name = newName();
  const tabs = await Promise.all([indexedDbStore(name), indexedDbStore(name)]);
  const waiting = (opId: string): Entry => ({
    opId,
    operation: { opId, type: "note.create", id: 1 },
    record: "prospect/1",
    raises: [],
    state: "waiting",
  });
  await Promise.all(tabs.flatMap((tab, i) => [0, 1, 2].map((n) => tab.commit({ save: [waiting(`${i}-${n}`)] }))));
  const outbox = (await tabs[0]?.outbox()) ?? [];
  expect(outbox.map(({ opId }) => opId).toSorted()).toEqual(["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]);
  expect(new Set(outbox.map(({ position }) => position)).size).toBe(6);
});

test("only one of two tabs applies the page after a cursor", async () => {
  const name = newName();
  const tabs = await Promise.all([indexedDbStore(name), indexedDbStore(name)]);
  const state = await tabs[0].state();
  const applied = await Promise.all(
    tabs.map((tab, i) => tab.commit({ ifCursor: null, state: { ...state, cursor: `page ${i}` } })),
  );
  expect(applied.toSorted()).toEqual([false, true]);
});
