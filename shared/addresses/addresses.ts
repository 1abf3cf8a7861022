/** Makes, finds and lists the addresses of a company, and links prospects to them. */

import * as z from "zod/mini";
import { Address, type AddressQuery, type NewAddress, StoredAddress } from "#shared/addresses/schema.ts";
import { iso } from "#shared/clock.ts";
import { absent, equals } from "#shared/db/expression.ts";
import { IDS_PER_PARTITION, keys } from "#shared/db/keys.ts";
import type { Table, Write } from "#shared/db/table.ts";
import { ApiError, notFound } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";
import type { World } from "#shared/world.ts";

/** The largest answer takes four full blocks. */
const BLOCKS_AT_ONCE = 4;

export function addressFrom(id: number, input: NewAddress): Address {
  const { address1, address2 = null, city, state, zip } = input;
  const lines = [address1, address2, city, `${state} ${zip}`].filter((line) => line !== null && line !== "");
  return { id, address1, address2, city, state, zip, formattedAddress: input.formattedAddress ?? lines.join(", ") };
}

/** Without `prospectId` nobody has the address yet. */
export function newAddressWrite(companyId: number, address: Address, now: string, prospectId?: number): Write {
  const stored: StoredAddress = {
    ...address,
    type: "address",
    companyId,
    version: 1,
    links: 0,
    ...(prospectId !== undefined && { prospectIds: new Set([prospectId]), links: 1 }),
    createdAt: now,
    updatedAt: now,
  };
  return { put: { ...keys.address(companyId, address.id), ...stored }, when: absent };
}

/** Goes with the prospect that takes a copy; fails when the address is no longer what was copied. */
export function linkWrite({ companyId, id, version, prospectIds }: StoredAddress, prospectId: number): Write {
  if (prospectIds !== undefined && prospectIds.size >= limits.prospectsPerAddress && !prospectIds.has(prospectId)) {
    throw new ApiError("conflict", `At most ${limits.prospectsPerAddress} prospects may share an address.`);
  }
  return {
    update: keys.address(companyId, id),
    change: { add: { prospectIds: new Set([prospectId]), links: 1 } },
    when: equals("version", version),
  };
}

/** The address, or `undefined` when the company has none with this id. */
export async function findAddress({ table }: World, companyId: number, id: number): Promise<StoredAddress | undefined> {
  const item = await table.get(keys.address(companyId, id));
  return item === undefined ? undefined : StoredAddress.parse(item);
}

export async function readAddress(world: World, companyId: number, id: number): Promise<StoredAddress> {
  const found = await findAddress(world, companyId, id);
  if (found === undefined) throw notFound("address");
  return found;
}

/** As the interface shows it and prospects hold it. */
export const presentAddress = (stored: StoredAddress): Address => Address.parse(stored);

export async function createAddress(world: World, companyId: number, input: NewAddress): Promise<Address> {
  const address = addressFrom(await world.ids.nextAddress(companyId), input);
  await world.commit([newAddressWrite(companyId, address, iso(world.clock.now()))], address);
  return address;
}

/**
 * A part of the company's addresses in order of their ids. The company's ranges tell which partitions hold them, so
 * nothing but the part is read, and a create writes no index: an address costs its row alone.
 */
export async function listAddresses(
  { table }: World,
  companyId: number,
  { after, limit }: AddressQuery,
): Promise<Address[]> {
  const addresses: Address[] = [];
  const blocks = await blocksFrom(table, companyId, Math.floor((after + 1) / IDS_PER_PARTITION));
  while (blocks.length > 0 && addresses.length < limit) {
    const read = await Promise.all(blocks.splice(0, BLOCKS_AT_ONCE).map((block) => readBlock(table, companyId, block)));
    addresses.push(...read.flat().filter(({ id }) => id > after));
  }
  return addresses.slice(0, limit);
}

async function readBlock(table: Table, companyId: number, block: number): Promise<Address[]> {
  const addresses: Address[] = [];
  for await (const item of table.query(keys.addressBlock(companyId, block))) addresses.push(Address.parse(item));
  return addresses;
}

const Range = z.object({ from: z.int(), to: z.int() });

/** Ranges come in the order of their first block and do not overlap. */
async function blocksFrom(table: Table, companyId: number, first: number): Promise<number[]> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.addressRanges(companyId))) {
    const { from, to } = Range.parse(item);
    for (let block = Math.max(from, first); block <= to; block++) blocks.push(block);
  }
  return blocks;
}

/** Does the input say what the address already says? */
export const sameAddress = (address: Address | null, input: NewAddress): boolean =>
  address !== null && isSame(address, addressFrom(address.id, input));

export const isSame = (a: Address, b: Address): boolean =>
  a.id === b.id &&
  a.address1 === b.address1 &&
  a.address2 === b.address2 &&
  a.city === b.city &&
  a.state === b.state &&
  a.zip === b.zip &&
  a.formattedAddress === b.formattedAddress;
