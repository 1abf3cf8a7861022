/** Tests the checksums of `GET /api/changes`: their values, and that a warm function reads nothing more in order to compute them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { metered } from "#shared/db/meter.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { checksumOf } from "#shared/sync/changes/checksums.ts";
import { ChangeType } from "#shared/sync/changes/schema.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { forgetRows } from "../harness/forget-rows.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import * as verbs from "../harness/verbs.ts";
import { Device, fnv1a } from "./device.ts";
import { newStage, newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();
const HOUR_MS = 3_600_000;
const hex = (value: bigint): string => value.toString(16).padStart(16, "0");

test("the hash is FNV-1a with 64 bits", () => {
  // These hashes are from the test vectors of the FNV specification.
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

test("a page has checksums only if the request asks for them, and the checksum of no records is zero", async () => {
  const { context, owner } = await newStage(db);
  const read = (checksum?: boolean, cursor?: string) =>
    readChanges(context, owner, {
      limit: 3,
      types: cursor === undefined ? ["prospects"] : undefined,
      cursor,
      checksum,
    });
  let page = await read(true);
  while (page.hasMore) page = await read(true, page.cursor);
  expect(page.checksums).toEqual({ prospects: "0000000000000000" });
  for (const checksum of [false, undefined]) expect((await read(checksum, page.cursor)).checksums).toBeUndefined();
});

test("all devices hold the same version of a prospect, after each change of what it shows without a write of its row", async () => {
  const { context, owner, reps, time } = await newTimedStage(db);
  const { companyId } = owner;
  const [rep = expect.fail(), second = expect.fail(), third = expect.fail()] = reps;
  const status = await verbs.createStatus(context, companyId, { value: "Hot" });
  const tag = await verbs.createTag(context, companyId, { value: "A" });
  const otherTag = await verbs.createTag(context, companyId, { value: "B" });
  const identities = memoryIdentities();
  const name = { email: `ina-of-${companyId}@x.test`, firstName: "Ina", lastName: "B" };
  const invited = await verbs.createUser(context, identities, owner, { ...name, role: "sales", permissions: [] });
  const fields = { assignedToUserId: rep.userId, currentStatusId: status.id };
  const { id } = await verbs.createProspect(context, owner, fields);
  await verbs.setTags(context, owner, id, { tagIds: [tag.id, otherTag.id] });
  for (const [i, userId] of [rep.userId, second.userId, rep.userId, third.userId, invited.id].entries()) {
    const startAt = new Date(time.nowMs + (i + 1) * HOUR_MS).toISOString();
    await verbs.createAppointment(context, owner, id, { title: "Visit", startAt, assignedToUserId: userId });
  }
  const pull = async (device: Device): Promise<void> => {
    const caller = device.userId === owner.userId ? owner : rep;
    const query = { limit: 500, cursor: device.cursor, types: undefined, checksum: true };
    const page = await readChanges(context, caller, query);
    device.apply(page);
    if (page.hasMore) return pull(device);
    expect(page.checksums).toEqual(device.checksums());
  };
  const newDevices = () => [owner, rep].map(({ userId }) => new Device(userId, ChangeType.options, [500]));
  const old = newDevices();
  let before = { version: 0, shown: "" };
  const changed = async (what: string, change: () => unknown): Promise<void> => {
    await change();
    const devices = [...old, ...newDevices()];
    for (const device of devices) await pull(device);
    const copies = devices.map((device) => device.copyOf(`prospects ${id}`) ?? expect.fail());
    expect(new Set(copies.map((copy) => JSON.stringify(copy))).size, what).toBe(1);
    const [{ version, data } = expect.fail()] = copies;
    expect(version, what).toBeGreaterThan(before.version);
    expect(JSON.stringify(data), what).not.toBe(before.shown);
    before = { version, shown: JSON.stringify(data) };
  };
  const rename = ({ userId }: Caller, firstName: string) => verbs.updateUser(context, owner, userId, { firstName });
  const begin = () => (time.nowMs += HOUR_MS + 1);
  await changed("nothing before", () => undefined);
  await changed("the status", () => verbs.updateStatus(context, companyId, status.id, { value: "Cold" }));
  await changed("a tag", () => verbs.updateTag(context, companyId, tag.id, { color: "#000000" }));
  await changed("the deletion of this tag", () => verbs.deleteTag(context, companyId, tag.id));
  await changed("the other tag", () => verbs.updateTag(context, companyId, otherTag.id, { value: "C" }));
  await changed("the author of the appointments", () => rename(owner, "Ola"));
  await changed("the assignee", () => rename(rep, "Ria"));
  await changed("the begin of the first appointment", begin);
  await changed("the user of the second appointment", () => rename(second, "Sue"));
  await changed("the begin of the second appointment", begin);
  await flush(context, companyId, { least: 1, settleMs: 0 });
  await changed("the begin of the third appointment, the last one with a copy", begin);
  await changed("the user of the fourth appointment", () => rename(third, "Tim"));
  await changed("the begin of the fourth appointment", begin);
  await changed("the user of the fifth appointment, who is invited again", async () => {
    await verbs.disableOrWithdraw(context, identities, owner, invited.id);
    await verbs.changeUser(context, identities, owner, invited.id, { isActive: true, firstName: "Una" });
  });
  await changed("the begin of the fifth appointment", begin);
});

test("a warm function needs no further read units for checksums, also while there are unflushed changes", async () => {
  const { context, owner } = await newStage(db);
  const ids: number[] = [];
  for (let i = 0; i < 20; i++) ids.push((await verbs.createProspect(context, owner, { name: "Ann" })).id);
  for (const startAt of ["2035-01-01", "2035-01-02", "2035-01-03", "2035-01-04"]) {
    await verbs.createAppointment(context, owner, ids[0] ?? 0, { title: "Visit", startAt: `${startAt}T00:00:00.000Z` });
  }
  await verbs.createTerritory(context, owner, { name: "North", totalProperties: 0, assignedToUserId: null });
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
    for (const id of ids.slice(0, changed)) await verbs.updateProspect(context, owner, id, { name: `Eve ${changed}` });
    const before = cursor;
    const bare = await pull(false, before);
    const checked = await pull(true, before);
    expect(checked.checksums?.prospects).toMatch(/^[0-9a-f]{16}$/);
    expect([checked.units, checked.rounds, checked.items]).toEqual([bare.units, bare.rounds, bare.items]);
  }
});
