/** Tests the checksums of `GET /api/changes`: their values, and that a warm function needs no further read for them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { flush } from "#shared/company-index/write/flush.ts";
import { metered } from "#shared/db/meter.ts";
import { createProspect, updateProspect } from "#shared/prospects/write.ts";
import { createTag } from "#shared/reference/tags.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { checksumOf } from "#shared/sync/changes/checksums.ts";
import { createTerritory } from "#shared/territories/territories.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { Device, fnv1a } from "./device.ts";
import { newStage } from "./stage.ts";

const db = faultyDynamoDb();
const hex = (value: bigint): string => value.toString(16).padStart(16, "0");

test("the hash is FNV-1a with 64 bits", () => {
  // From the test vectors of the specification.
  expect(hex(fnv1a(""))).toBe("cbf29ce484222325");
  expect(hex(fnv1a("foobar"))).toBe("85944171f73967e8");
  const number = fc.nat(Number.MAX_SAFE_INTEGER);
  const records = fc.array(fc.record({ id: number, version: number }), { maxLength: 5 });
  fc.assert(
    fc.property(records, (all) => {
      const sum = all.reduce((xor, { id, version }) => xor ^ fnv1a(`tags:${id}:${version}`), 0n);
      expect(checksumOf("tags", all)).toBe(hex(sum));
    }),
  );
});

test("the checksums are those of the caller's copies, of the wanted types, and only at the end of the changes", async () => {
  const { context, owner, reps } = await newStage(db);
  const [rep = expect.fail()] = reps;
  for (let i = 0; i < 5; i++) {
    const { id } = await createProspect(context, owner, { assignedToUserId: i < 2 ? rep.userId : null });
    if (i % 2 === 0) await updateProspect(context, owner, id, { name: "Ann" });
    if (i === 3) await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  }
  await createTerritory(context, owner, { name: "North", totalProperties: 0, assignedToUserId: null });
  await createTag(context, owner.companyId, { value: "Corner lot" });
  for (const [caller, types] of [
    [owner, ["prospects", "notes", "appointments", "territories", "statuses", "tags", "users"]],
    [rep, ["prospects", "tags", "notes"]],
    [rep, ["notes"]],
  ] as const) {
    const device = new Device(caller.userId, types, [3]);
    for (let hasMore = true; hasMore; ) {
      const { cursor } = device;
      const query = { limit: 3, cursor, types: cursor === undefined ? [...types] : undefined };
      const page = await readChanges(context, caller, { ...query, checksum: true });
      device.apply(page);
      ({ hasMore } = page);
      expect(page.checksums).toEqual(hasMore ? undefined : device.checksums());
    }
    const query = { limit: 3, cursor: device.cursor, types: undefined };
    for (const checksum of [false, undefined]) {
      expect((await readChanges(context, caller, { ...query, checksum })).checksums).toBeUndefined();
    }
  }
  const nothing = new Device(reps[1]?.userId ?? 0, ["prospects"], [3]).checksums();
  expect(nothing).toEqual({ prospects: "0000000000000000" });
});

test("a warm function needs no further read units for checksums, also while there are unflushed changes", async () => {
  const { context, owner } = await newStage(db);
  const ids: number[] = [];
  for (let i = 0; i < 20; i++) ids.push((await createProspect(context, owner, { name: "Ann" })).id);
  await createTerritory(context, owner, { name: "North", totalProperties: 0, assignedToUserId: null });
  await flush(context, owner.companyId, { least: 1, settleMs: 0 });
  let cursor: string | undefined;
  const pull = async (checksum: boolean, from = cursor) => {
    forgetRows(context.table, owner.companyId);
    const page = () => readChanges(context, owner, { limit: 500, types: undefined, cursor: from, checksum });
    const { result, usage } = await metered(page);
    ({ cursor } = result);
    return { ...result, units: usage.readUnits, rounds: usage.rounds };
  };
  for (let i = 0; i < 3; i++) await pull(true);
  for (const changed of [0, 1, 5]) {
    for (const id of ids.slice(0, changed)) await updateProspect(context, owner, id, { name: `Eve ${changed}` });
    const before = cursor;
    const bare = await pull(false, before);
    const checked = await pull(true, before);
    expect(checked.checksums?.prospects).toMatch(/^[0-9a-f]{16}$/);
    expect([checked.units, checked.rounds, checked.items]).toEqual([bare.units, bare.rounds, bare.items]);
  }
});
