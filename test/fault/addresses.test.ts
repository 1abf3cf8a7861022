/** An address and the prospects that hold a copy of it: never apart for good, whatever races and wherever it stops. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAddress, readAddress } from "#shared/addresses/addresses.ts";
import { updateAddress } from "#shared/addresses/update.ts";
import type { Caller } from "#shared/auth/caller.ts";
import { createCompany } from "#shared/companies/create.ts";
import { readAllProspects } from "#shared/prospects/plain-reading.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { createProspect, deleteProspect, updateProspect } from "#shared/prospects/write.ts";
import { type World, worldOn } from "#shared/world.ts";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

let db: FaultyDynamoDb;
beforeAll(async () => {
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

let companies = 0;
async function company(): Promise<{ world: World; caller: Caller }> {
  const world = worldOn(db.direct);
  const sub = `addresses-${companies++}`;
  const owner = { email: `${sub}@x.test`, firstName: "A", lastName: "B", sub };
  const made = await createCompany(world, { name: "Acme", owner });
  return { world, caller: { companyId: made.company.id, userId: made.owner.id, role: "owner", permissions: [] } };
}

async function inParallel<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  return results;
}

const allProspects = async (world: World, { companyId }: Caller): Promise<StoredProspect[]> =>
  (await readAllProspects(world.table, companyId)).prospects;

test("a change of an address that 200 prospects share goes on where it was cut off", async () => {
  const { world, caller } = await company();
  const { id } = await createAddress(world, caller.companyId, home);
  const made = await inParallel(200, () => createProspect(world, caller, { addressId: id }));
  const versions = async () => (await allProspects(world, caller)).map(({ version }) => version);

  let transactions = 0;
  db.plan((operation) => {
    if (operation !== "TransactWriteItems") return pass;
    transactions++;
    return transactions < 3 ? pass : { kind: "error", code: "ValidationException", status: 400 };
  });
  const cut = updateAddress(worldOn(db.table), caller, id, { city: "Aurora" });
  await expect(cut).rejects.toThrow();
  expect((await versions()).filter((version) => version === 2)).toHaveLength(45);
  expect(await readAddress(world, caller.companyId, id)).toMatchObject({ city: "Aurora", isSpreading: true });

  await updateProspect(world, caller, made[150]?.id ?? 0, { name: "meanwhile" });
  await updateAddress(world, caller, id, {});
  const prospects = await allProspects(world, caller);
  expect(new Set(prospects.map(({ address }) => address?.formattedAddress))).toEqual(
    new Set(["1 Main St, Aurora, CO 80202"]),
  );
  expect(prospects.filter(({ name }) => name === "meanwhile")).toHaveLength(1);
  expect((await versions()).toSorted()).toEqual([...Array.from({ length: 199 }, () => 2), 3]);
  expect((await readAddress(world, caller.companyId, id)).isSpreading).toBeUndefined();
});

test("up to 45 prospects change in the transaction of their address, or none of them", async () => {
  const { world, caller } = await company();
  const { id } = await createAddress(world, caller.companyId, home);
  const made = await inParallel(20, () => createProspect(world, caller, { addressId: id }));
  await deleteProspect(world, caller, made[0]?.id ?? 0);
  await updateProspect(world, caller, made[1]?.id ?? 0, { addressId: null });
  db.plan((operation) =>
    operation === "TransactWriteItems" ? { kind: "error", code: "ValidationException", status: 400 } : pass,
  );
  await expect(updateAddress(worldOn(db.table), caller, id, { zip: "1" })).rejects.toThrow();
  expect((await allProspects(world, caller)).filter(({ address }) => address?.zip === "1")).toEqual([]);

  db.plan(() => pass);
  await updateAddress(worldOn(db.table), caller, id, { zip: "1" });
  expect(db.calls.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
  const prospects = await allProspects(world, caller);
  expect(prospects.filter(({ address }) => address?.zip === "1")).toHaveLength(18);
  expect(prospects.find((prospect) => prospect.id === made[1]?.id)).toMatchObject({ address: null, version: 2 });
  expect((await readAddress(world, caller.companyId, id)).prospectIds?.size).toBe(18);
});

test("racing changes of the address, of its prospects and of who has it lose nothing", async () => {
  const { world, caller } = await company();
  const [first, second] = await Promise.all([
    createAddress(world, caller.companyId, home),
    createAddress(world, caller.companyId, { ...home, address1: "2 Main St" }),
  ]);
  const made = await inParallel(6, () => createProspect(world, caller, { addressId: first.id }));
  const ids = made.map(({ id }) => id);
  await Promise.all([
    ...Array.from({ length: 5 }, (_, i) => updateAddress(world, caller, first.id, { zip: `1-${i}` })),
    ...Array.from({ length: 5 }, (_, i) => updateAddress(world, caller, second.id, { zip: `2-${i}` })),
    ...ids.map((id) => updateProspect(world, caller, id, { name: `name ${id}` })),
    ...ids.map((id) => updateProspect(world, caller, id, { phoneNumber: `phone ${id}`, addressId: second.id })),
    ...ids.slice(3).map((id) => updateProspect(world, caller, id, { addressId: first.id })),
    ...Array.from({ length: 6 }, () => createProspect(world, caller, { addressId: second.id })),
  ]);
  const rows = await Promise.all([first, second].map(({ id }) => readAddress(world, caller.companyId, id)));
  const prospects = await allProspects(world, caller);
  expect(prospects).toHaveLength(12);
  for (const { id, address, name, phoneNumber } of prospects) {
    const row = rows.find((entry) => entry.id === address?.id);
    expect(row?.zip).toBe(address?.zip);
    expect(row?.prospectIds).toContain(id);
    if (ids.includes(id)) expect([name, phoneNumber]).toEqual([`name ${id}`, `phone ${id}`]);
  }
});
