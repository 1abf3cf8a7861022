/** Tests that the copies of an address in prospects' rows equal the address after interrupted changes, and who sees an address. */
import { describe, expect, test } from "vitest";
import { mapConcurrently } from "#shared/all-ended.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { IDS_PER_PARTITION } from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import * as limits from "#shared/limits.ts";
import { packAddresses } from "#shared/prospects/address-rows.ts";
import { findAddress, getAddress, newAddressWrite } from "#shared/prospects/addresses.ts";
import { listAddresses } from "#shared/prospects/list/addresses.ts";
import { prospectItem, type StoredProspect } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { readAllProspects } from "../harness/index-oracle.ts";
import { calledBy } from "../harness/killable.ts";
import { present } from "../harness/shapes.ts";
import { createAddress, createProspect, deleteProspect, updateAddress, updateProspect } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const readAddress = async (...which: Parameters<typeof findAddress>) => present(await findAddress(...which));

const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

async function companyWithRep(): Promise<{ context: ApiContext; owner: Caller; rep: Caller }> {
  const context = contextOn(db.direct);
  const { caller: owner, repId } = await newCompany(context);
  return { context, owner, rep: { ...owner, userId: repId, role: "sales" } };
}

const inParallel = <T>(count: number, work: () => Promise<T>): Promise<T[]> =>
  mapConcurrently([...Array(count).keys()], 8, work);

const allProspects = async (context: ApiContext, { companyId }: Caller): Promise<StoredProspect[]> =>
  (await readAllProspects(context.table, companyId)).prospects;

test("an interrupted change of an address with 200 prospects is completed by the next patch", async () => {
  const { context, owner: caller } = await companyWithRep();
  const { id } = await createAddress(context, caller.companyId, home);
  const made = await inParallel(200, () => createProspect(context, caller, { addressId: id }));
  const versions = async () => (await allProspects(context, caller)).map(({ version }) => version);

  let transactions = 0;
  db.plan((operation) => {
    if (operation !== "TransactWriteItems") return pass;
    transactions++;
    return transactions < 3 ? pass : { kind: "error", code: "ValidationException", status: 400 };
  });
  const cut = updateAddress(contextOn(db.table), caller, id, { city: "Aurora" });
  await expect(cut).rejects.toThrow();
  expect((await versions()).filter((version) => version === 2)).toHaveLength(limits.prospectsChangedAtOnce);
  expect(await readAddress(context, caller.companyId, id)).toMatchObject({ city: "Aurora", isSpreading: true });

  await updateProspect(context, caller, made[150]?.id ?? 0, { name: "meanwhile" });
  await updateAddress(context, caller, id, {});
  const prospects = await allProspects(context, caller);
  const texts = new Set(prospects.map(({ address }) => address?.formattedAddress));
  expect(texts).toEqual(new Set(["1 Main St, Aurora, CO 80202"]));
  expect(prospects.filter(({ name }) => name === "meanwhile")).toHaveLength(1);
  expect((await versions()).toSorted()).toEqual([...Array.from({ length: 199 }, () => 2), 3]);
  expect((await readAddress(context, caller.companyId, id)).isSpreading).toBeUndefined();
});

test("up to 33 copies change in one transaction with their address", async () => {
  const { context, owner: caller } = await companyWithRep();
  const { id } = await createAddress(context, caller.companyId, home);
  const most = limits.prospectsChangedAtOnce;
  const made = await inParallel(most + 2, () => createProspect(context, caller, { addressId: id }));
  await deleteProspect(context, caller, made[0]?.id ?? 0);
  await updateProspect(context, caller, made[1]?.id ?? 0, { addressId: null });
  db.plan((operation) =>
    operation === "TransactWriteItems" ? { kind: "error", code: "ValidationException", status: 400 } : pass,
  );
  await expect(updateAddress(contextOn(db.table), caller, id, { zip: "1" })).rejects.toThrow();
  expect((await allProspects(context, caller)).filter(({ address }) => address?.zip === "1")).toEqual([]);

  db.plan(() => pass);
  await updateAddress(contextOn(db.table), caller, id, { zip: "1" });
  expect(db.calls.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
  const prospects = await allProspects(context, caller);
  expect(prospects.filter(({ address }) => address?.zip === "1")).toHaveLength(most);
  expect(prospects.find((prospect) => prospect.id === made[1]?.id)).toMatchObject({ address: null, version: 2 });
  const row = await readAddress(context, caller.companyId, id);
  expect(row.prospectIds?.size).toBe(most);
  expect(row.isSpreading).toBeUndefined();
});

interface CityChange {
  readonly city: string;
  /** The number of the transaction before which the change is killed. */
  readonly killedAt?: number;
}

/**
 * Makes the change `slow` to the city of an address that 35 prospects' rows copy. Just before transaction number `number` of `slow`, makes
 * the change `other`. Returns the different cities of the address and of its copies.
 */
async function citiesAfter(slow: CityChange, number: number, other: CityChange) {
  const { context, owner: caller } = await companyWithRep();
  const { id } = await createAddress(context, caller.companyId, home);
  await inParallel(limits.prospectsChangedAtOnce + 2, () => createProspect(context, caller, { addressId: id }));
  const change = async ({ city, killedAt }: CityChange, before?: (transaction: number) => Promise<unknown>) => {
    let transactions = 0;
    const table = calledBy(async (work, name) => {
      if (name === "transact" && ++transactions === killedAt) throw new Error("killed");
      if (name === "transact") await before?.(transactions);
      return work();
    }, context.table);
    const changed = updateAddress({ ...context, table }, caller, id, { city });
    await (killedAt === undefined ? changed : expect(changed).rejects.toThrow("killed"));
  };
  await change(slow, async (transaction) => {
    if (transaction === number) await change(other);
  });
  const copies = (await allProspects(context, caller)).map(({ address }) => address?.city);
  return [...new Set([(await readAddress(context, caller.companyId, id)).city, ...copies])];
}

test("a slow change of copies changes none after another change has restored the address", async () => {
  expect(await citiesAfter({ city: "Aurora", killedAt: 3 }, 2, { city: home.city })).toEqual([home.city]);
});

test("a change that finds no outdated copies keeps the mark of a later change, and completes this change", async () => {
  expect(await citiesAfter({ city: "Aurora" }, 4, { city: "Boulder", killedAt: 2 })).toEqual(["Boulder"]);
});

const listed = async (context: ApiContext, caller: Caller): Promise<number[]> =>
  (await listAddresses(context, caller, { after: 0, limit: 500 })).addresses.map(({ id }) => id);
const notFound = { code: "not_found" };
const badReference = { code: "validation_failed", faults: [{ pointer: "/addressId" }] };

describe.each(["unflushed", "flushed"])("with an index that is %s, a user who sees only own prospects", (state) => {
  test("sees an address of an own prospect or of no prospect, and changes it if no prospect of another user has it", async () => {
    const { context, owner, rep } = await companyWithRep();
    const assigned = { assignedToUserId: rep.userId };
    const [free, mine, theirs, shared] = await inParallel(4, () => createAddress(context, owner.companyId, home));
    if (free === undefined || mine === undefined || theirs === undefined || shared === undefined) throw new Error();
    await createProspect(context, owner, { addressId: mine.id, ...assigned });
    const other = await createProspect(context, owner, { addressId: theirs.id });
    const sharer = await createProspect(context, owner, { addressId: shared.id, ...assigned });
    await createProspect(context, owner, { addressId: shared.id });
    const inline = await createProspect(context, owner, { address: home });
    if (state === "flushed") await flush(context, owner.companyId, { least: 1, settleMs: 0 });
    const hidden = [theirs.id, inline.address?.id ?? 0];

    expect(await listed(context, rep)).toEqual([free.id, mine.id, shared.id].toSorted((a, b) => a - b));
    expect(await listed(context, owner)).toHaveLength(5);
    for (const { id } of [free, mine, shared]) expect(await getAddress(context, rep, id)).toMatchObject({ id });
    for (const id of hidden) await expect(getAddress(context, rep, id)).rejects.toMatchObject(notFound);
    const versions = async () => (await allProspects(context, owner)).map(({ id, version }) => [id, version]);
    const before = await versions();
    for (const id of [...hidden, shared.id]) {
      await expect(updateAddress(context, rep, id, { zip: "9" })).rejects.toMatchObject(notFound);
      await expect(updateAddress(context, rep, id, {})).rejects.toMatchObject(notFound);
    }
    for (const addressId of hidden) {
      await expect(createProspect(context, rep, { addressId })).rejects.toMatchObject(badReference);
      await expect(updateProspect(context, rep, sharer.id, { addressId })).rejects.toMatchObject(badReference);
    }
    expect(await versions()).toEqual(before);
    for (const { id } of [free, mine])
      expect(await updateAddress(context, rep, id, { zip: "9" })).toMatchObject({ zip: "9" });

    // A user sees an address of a visible prospect, so changes of prospects must change who sees the address.
    await updateProspect(context, owner, other.id, { addressId: free.id });
    expect(await listed(context, rep)).toEqual([mine.id, theirs.id, shared.id].toSorted((a, b) => a - b));
    await expect(getAddress(context, rep, free.id)).rejects.toMatchObject(notFound);
    await updateProspect(context, owner, other.id, { addressId: null });
    expect(await listed(context, rep)).toContain(free.id);
    await updateProspect(context, owner, inline.id, { ...assigned });
    expect(await listed(context, rep)).toContain(inline.address?.id);
    await updateProspect(context, owner, other.id, { addressId: theirs.id });
    await deleteProspect(context, owner, other.id);
    expect(await listed(context, rep)).toHaveLength(4);
    await expect(getAddress(context, rep, theirs.id)).rejects.toMatchObject(notFound);
  });

  test("sees the address of a deleted prospect only if the prospect was assigned to this user", async () => {
    const { context, owner, rep } = await companyWithRep();
    const stranger = { ...rep, userId: owner.userId };
    const [mine, theirs, both] = await inParallel(3, () => createAddress(context, owner.companyId, home));
    if (mine === undefined || theirs === undefined || both === undefined) throw new Error();
    const assigned = { assignedToUserId: rep.userId };
    const own = await createProspect(context, owner, { addressId: mine.id, ...assigned });
    const other = await createProspect(context, owner, { addressId: theirs.id });
    const shared = await createProspect(context, owner, { addressId: both.id, ...assigned });
    await createProspect(context, owner, { addressId: both.id, assignedToUserId: owner.userId });
    const expectVisibleTo = async (caller: Caller, ids: number[]) => {
      expect(await listed(context, caller)).toEqual(ids.toSorted((a, b) => a - b));
      for (const { id } of [mine, theirs, both]) {
        const answer = getAddress(context, caller, id);
        if (ids.includes(id)) expect(await answer).toMatchObject({ id });
        else await expect(answer).rejects.toMatchObject(notFound);
      }
    };
    for (const { id } of [own, other]) await deleteProspect(context, owner, id);
    if (state === "flushed") await flush(context, owner.companyId, { least: 1, settleMs: 0 });

    await expectVisibleTo(rep, [mine.id, both.id]);
    await expectVisibleTo(stranger, [both.id]);
    for (const [caller, hidden] of [
      [rep, theirs],
      [stranger, mine],
    ] as const) {
      await expect(updateAddress(context, caller, hidden.id, { zip: "9" })).rejects.toMatchObject(notFound);
      await expect(createProspect(context, caller, { addressId: hidden.id })).rejects.toMatchObject(badReference);
    }
    // A change of the address itself must not change who sees the address.
    for (const caller of [rep, owner]) await updateAddress(context, caller, mine.id, { zip: `9-${caller.role}` });
    await updateAddress(context, owner, theirs.id, { zip: "9" });
    await expectVisibleTo(rep, [mine.id, both.id]);
    await expectVisibleTo(stranger, [both.id]);
    // After a prospect is deleted, only the remaining prospects with the address determine who sees it.
    await deleteProspect(context, owner, shared.id);
    await expectVisibleTo(rep, [mine.id]);
    await expectVisibleTo(stranger, [both.id]);
  });
});

test("the list shows the same addresses as GET if the index or the table lacks a prospect of an address", async () => {
  const { context, owner, rep } = await companyWithRep();
  const { companyId } = owner;
  const [mine, theirs, gone, moved] = await inParallel(4, async () => context.ids.nextAddress(companyId));
  if (mine === undefined || theirs === undefined || gone === undefined || moved === undefined) throw new Error();
  const { id: sampleId } = await createProspect(context, owner, {});
  const [sample = expect.fail("the prospect is missing")] = await allProspects(context, owner);
  const now = "2030-01-01T00:00:00.000Z";
  /** Writes an address and its prospect. The index does not contain the prospect. */
  const addPair = async (id: number, assignedToUserId: number | null, copyId = id): Promise<void> => {
    const prospectId = await context.ids.next();
    const address = { ...home, id: copyId, address2: null, formattedAddress: null };
    await context.table.transact([newAddressWrite(companyId, { ...address, id }, now, prospectId)]);
    const row = { ...sample, id: prospectId, address, assignedToUserId };
    await context.table.write({ put: { ...keys.prospect(companyId, prospectId), ...prospectItem(row) } });
  };
  await addPair(mine, rep.userId);
  await addPair(theirs, owner.userId);
  await addPair(moved, owner.userId, mine);
  const nowhere = { ...home, id: gone, address2: null, formattedAddress: null };
  await context.table.transact([newAddressWrite(companyId, nowhere, now, sampleId + 1_000_000)]);

  const all = [mine, theirs, gone, moved].toSorted((a, b) => a - b);
  expect(await listed(context, owner)).toEqual(all);
  const answers = await Promise.allSettled(all.map((id) => getAddress(context, rep, id)));
  const seen = all.filter((_, i) => answers[i]?.status === "fulfilled");
  expect(seen).toEqual([mine, gone, moved].toSorted((a, b) => a - b));
  expect(await listed(context, rep)).toEqual(seen);
  for (const id of all) expect(await getAddress(context, owner, id)).toMatchObject({ id });
});

test("an imported address has no holder after its prospect takes another address", async () => {
  const { context, owner, rep } = await companyWithRep();
  const { companyId } = owner;
  const { id: prospectId } = await createProspect(context, owner, {});
  const id = await context.ids.nextAddress(companyId);
  const packed = { id, ...home, address2: null, prospectId };
  await context.table.batchPut(packAddresses(companyId, "demo", "2030-01-01T00:00:00.000Z", [packed]));
  const [row = expect.fail("the prospect is missing")] = await allProspects(context, owner);
  const copied = prospectItem({ ...row, address: { ...packed, formattedAddress: null } });
  await context.table.write({ put: { ...keys.prospect(companyId, prospectId), ...copied } });
  expect(await listed(context, rep)).toEqual([]);
  await updateProspect(context, owner, prospectId, { address: { ...home, zip: "1" } });
  expect(await listed(context, rep)).toEqual([id]);
  expect(await getAddress(context, rep, id)).toMatchObject({ id });
  expect(await listed(context, owner)).toHaveLength(2);
});

test("one request checks a limited number of addresses and names the next page", async () => {
  const { context, owner, rep } = await companyWithRep();
  const { companyId } = owner;
  const { id: prospectId } = await createProspect(context, owner, {});
  const blocks = limits.addressesLookedThrough / IDS_PER_PARTITION;
  const from = 5_000_000;
  const range = { type: "addressRange", from, to: from + blocks + 9 };
  const bare = { ...home, address2: null, formattedAddress: null };
  const at = (block: number) => ({ id: (from + block) * IDS_PER_PARTITION, ...bare });
  const write = (block: number, holder?: number) =>
    newAddressWrite(companyId, at(block), "2030-01-01T00:00:00.000Z", holder);
  await context.table.transact([{ put: { ...keys.addressRange(companyId, from), ...range } }]);
  for (let block = 0; block < blocks; block += 16) await context.table.transact([write(block, prospectId)]);
  await context.table.transact([write(blocks + 9)]);
  const { result, usage } = await metered(() => listAddresses(context, rep, { after: 0, limit: 50 }));
  expect(result.addresses).toEqual([]);
  expect(usage.readUnits).toBeLessThanOrEqual(2 * blocks);
  const next = await listAddresses(context, rep, { after: result.after ?? 0, limit: 50 });
  expect(next.addresses.map(({ id }) => id)).toEqual([at(blocks + 9).id]);
  expect(next.after).toBeUndefined();
});
