/** Tests the reference client against a small service: lost requests and answers, errors, a killed app, and several devices. */
import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { memoryStore, type Store } from "../../docs/client/store.ts";
import { sized } from "../harness/tier.ts";
import { FAULTS, type Fault } from "./phone.ts";
import { dataOf, SmallService, STEP } from "./small-service.ts";

let service: SmallService;

beforeEach(() => {
  service = new SmallService();
});

const fault = fc.constantFrom<Fault>("none", "none", ...FAULTS);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("create"), phone: fc.nat(1), name: fc.nat(99) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("prospect.update", "prospect.update", "prospect.delete"),
      phone: fc.nat(1),
      target: fc.nat(9),
      name: fc.nat(99),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("write", "hide", "show", "remove"),
      target: fc.nat(9),
      name: fc.nat(99),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reset") }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("sync"),
      phone: fc.nat(1),
      tabs: fc.constantFrom(1, 1, 2),
      faults: fc.array(fault, { maxLength: 8 }),
      calls: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(1_000)),
    }),
  },
);

test("two phones hold the list of the service in the end, and each operation has its effect once", {
  tags: "sized",
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      service = new SmallService();
      const phones = [service.newPhone(), service.newPhone()];
      const added: string[] = [];
      for (const one of steps) {
        const phone = phones["phone" in one ? one.phone : 0] ?? expect.fail();
        const ids = service.list().map(({ id }) => Number(id));
        const id = "target" in one ? ids[one.target % ids.length] : undefined;
        const data = { name: "name" in one ? one.name : "" };
        if (one.do === "sync" && "calls" in one) {
          phone.faults = [...one.faults];
          await phone.syncUntil(one.calls, one.tabs);
          phone.faults = [];
        } else if (one.do === "create") {
          const clientRecordId = crypto.randomUUID();
          const client = phone.open();
          added.push((await client.add({ type: "prospect.create", clientRecordId, fields: data })).opId);
          added.push((await client.add({ type: "prospect.update", clientRecordId, fields: { next: 1 } })).opId);
        } else if (one.do === "prospect.update" || one.do === "prospect.delete") {
          const shown = await phone.store.records("prospects");
          const record = "target" in one ? shown[one.target % shown.length] : undefined;
          if (record === undefined) continue;
          const fields = one.do === "prospect.update" ? { fields: data } : {};
          const operation = { type: one.do, id: record.id, baseVersion: record.version, ...fields };
          added.push((await phone.open().add(operation)).opId);
        } else if (one.do === "reset") service.reset();
        else if (one.do === "show") service.write(id, { isHidden: false, data });
        else if (id !== undefined) {
          service.write(id, { isHidden: one.do === "hide", isDeleted: one.do === "remove", data });
        }
      }
      const discarded = new Set<string>();
      for (const phone of phones) {
        for (const opId of await phone.settle()) discarded.add(opId);
        expect(await phone.store.outbox()).toEqual([]);
      }
      for (const phone of phones) {
        expect(await phone.open().sync()).toBe("synced");
        expect(await dataOf(phone)).toEqual(service.list().toSorted((a, b) => Number(a.id) - Number(b.id)));
      }
      expect(new Set(service.effects).size).toBe(service.effects.length);
      expect(service.effects.toSorted()).toEqual(added.filter((opId) => !discarded.has(opId)).toSorted());
    }),
    { numRuns: sized({ short: 60, wide: 1_000 }) },
  );
});

test("edits of one record that follow each other offline are no conflicts", async () => {
  const id = service.write(undefined, { data: { name: "a" } });
  const phone = service.newPhone();
  const client = phone.open();
  await client.sync();
  const { version: baseVersion = 0 } = (await phone.store.record("prospects", id)) ?? {};
  for (const name of ["b", "c", "d"]) await client.add({ type: "prospect.update", id, baseVersion, fields: { name } });
  phone.faults = [503, "lost answer"];
  // The service applies the first three edits, but the phone gets no answer from `GET /api/changes`, so it does not learn their results.
  phone.faults.push("none", "lost request", "lost request", "lost request", "lost request");
  expect(await client.sync()).toBe("offline");
  const last = await client.add({ type: "prospect.update", id, baseVersion, fields: { name: "e" } });
  expect(last.operation.baseVersion).toBe(4 * STEP);
  expect(await client.sync()).toBe("synced");
  expect(await client.failed()).toEqual([]);
  expect(service.list()).toEqual([{ id, name: "e" }]);
});

test("the app always shows changes that are not sent yet, and shows no change twice", async () => {
  const phone = service.newPhone();
  const client = phone.open();
  const shown = async (): Promise<unknown[]> =>
    (await client.shown("prospects")).map(({ record, pending }) => [
      record?.data.name,
      pending.map(({ state }) => state),
    ]);
  const clientRecordId = crypto.randomUUID();
  await client.add({ type: "prospect.create", clientRecordId, fields: { name: "a" } });
  await client.add({ type: "prospect.update", clientRecordId, fields: { name: "b" } });
  expect(await shown()).toEqual([[undefined, ["waiting", "waiting"]]]);
  phone.faults = ["lost answer", "none", "lost request", "lost request", "lost request", "lost request"];
  expect(await client.sync()).toBe("offline");
  expect(await shown()).toEqual([[undefined, ["applied", "applied"]]]);
  expect(await client.sync()).toBe("synced");
  expect(await shown()).toEqual([["b", []]]);
  const id = (await phone.store.records("prospects"))[0]?.id ?? 0;
  await client.add({ type: "prospect.update", id, fields: { name: "c" } });
  await client.add({ type: "prospect.update", clientRecordId, fields: { name: "d" } });
  expect(await shown()).toEqual([["b", ["waiting", "waiting"]]]);
});

test("a call of `sync` during a running sync sends the operations that were added meanwhile", async () => {
  const phone = service.newPhone();
  const client = phone.open();
  const running = client.sync();
  await client.add({ type: "prospect.create", clientRecordId: crypto.randomUUID(), fields: { name: "a" } });
  expect(client.sync()).toBe(running);
  expect(await running).toBe("synced");
  expect(service.list()).toHaveLength(1);
});

const HOUR_MS = 3_600_000;

/** The ways in which a test damages the store of a phone, as a fault of the app or of its database would. */
const damages: Record<string, (store: Store, id: number) => Promise<unknown>> = {
  "lacks a record": async (store, id) => {
    const { generation } = await store.state();
    await store.commit({ remove: [{ type: "prospects", id, version: Number.MAX_SAFE_INTEGER, generation }] });
  },
  "has an old version of a record": async (store, id) => {
    const record = (await store.record("prospects", id)) ?? expect.fail();
    await damages["lacks a record"]?.(store, id);
    const data = { ...record.data, name: "old" };
    await store.commit({ put: [{ ...record, data, version: record.version - STEP }] });
  },
  "has a record that does not exist": async (store, id) => {
    const record = (await store.record("prospects", id)) ?? expect.fail();
    await store.commit({ put: [{ ...record, id: 99, data: { ...record.data, id: 99 } }] });
  },
};

test.each(Object.entries(damages))(
  "a phone that %s notices it within a day, and at most once a day",
  async (_, damage) => {
    for (let i = 0; i < 5; i++) service.write(undefined, { data: { name: i } });
    const id = service.write(2, { data: { name: "new" } });
    const phone = service.newPhone();
    const isRepaired = async (): Promise<boolean> => {
      expect(await phone.open().sync()).toBe("synced");
      return JSON.stringify(await dataOf(phone)) === JSON.stringify(service.list());
    };
    expect(await isRepaired()).toBe(true);
    expect(service.checks).toBe(1);
    await damage(phone.store, id);
    service.nowMs += 23 * HOUR_MS;
    expect(await isRepaired()).toBe(false);
    expect(service.checks).toBe(1);
    service.nowMs += HOUR_MS;
    const { opId } = await phone.open().add({ type: "note.create", id: 1, fields: { body: "kept" } });
    expect(await isRepaired()).toBe(true);
    expect(service.effects).toEqual([opId]);
    expect(await phone.store.outbox()).toEqual([]);
    // The phone reads a new snapshot at most once a day, even if an upgrade of the app makes it compare its records earlier.
    await damage(phone.store, id);
    const upgraded = service.newPhone({ store: phone.store, release: "2" });
    expect(await upgraded.open().sync()).toBe("synced");
    expect(service.checks).toBe(5);
    expect(await isRepaired()).toBe(false);
    service.nowMs += 24 * HOUR_MS;
    expect(await isRepaired()).toBe(true);
  },
);

test("a phone compares its records at once after an upgrade of the app", async () => {
  const id = service.write(undefined, { data: { name: "a" } });
  const store = memoryStore();
  expect(await service.newPhone({ store, release: "1" }).open().sync()).toBe("synced");
  await damages["lacks a record"]?.(store, id);
  expect(await service.newPhone({ store, release: "1" }).open().sync()).toBe("synced");
  expect(await store.records("prospects")).toEqual([]);
  expect(await service.newPhone({ store, release: "2" }).open().sync()).toBe("synced");
  expect(await store.records("prospects")).toMatchObject([{ id }]);
});

test("a difference that is gone when the phone asks again does not make it begin anew", async () => {
  service.write(undefined, { data: { name: "a" } });
  let isWrong = true;
  const phone = service.newPhone({
    fetch: async (request) => {
      const answer = await service.fetch(request);
      const page = Object(await answer.clone().json());
      if (page.checksums === undefined || !isWrong) return answer;
      isWrong = false;
      return Response.json({ ...page, checksums: { ...page.checksums, tags: "f".repeat(16) } }, answer);
    },
  });
  expect(await phone.open().sync()).toBe("synced");
  expect([service.checks, isWrong, (await phone.store.state()).generation]).toEqual([2, false, 0]);
});
