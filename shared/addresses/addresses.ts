/** Makes, finds and lists the addresses of a company, and links prospects to them. */

import * as z from "zod/mini";
import { addressFrom, isSame } from "#shared/addresses/address.ts";
import { isPack, unpackAddresses } from "#shared/addresses/pack.ts";
import { Address, type AddressQuery, type NewAddress, StoredAddress } from "#shared/addresses/schema.ts";
import { iso } from "#shared/clock.ts";
import { absent, equals } from "#shared/db/expression.ts";
import { blockOf, IDS_PER_PARTITION, keys } from "#shared/db/keys.ts";
import type { Item, Table, Write } from "#shared/db/table.ts";
import { ApiError, notFound } from "#shared/http/problem.ts";
import { isPublished } from "#shared/imports/published.ts";
import { limits } from "#shared/limits.ts";
import type { World } from "#shared/world.ts";

/** The largest answer takes four full blocks. */
const BLOCKS_AT_ONCE = 4;

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
export function linkWrite(stored: StoredAddress, prospectId: number): Write {
  const { companyId, id, version, links, prospectIds } = stored;
  if (prospectIds !== undefined && prospectIds.size >= limits.prospectsPerAddress && !prospectIds.has(prospectId)) {
    throw new ApiError("conflict", `At most ${limits.prospectsPerAddress} prospects may share an address.`);
  }
  if (stored.isPacked) {
    return firstRow({ ...stored, prospectIds: new Set([...(prospectIds ?? []), prospectId]), links: links + 1 });
  }
  return {
    update: keys.address(companyId, id),
    change: { add: { prospectIds: new Set([prospectId]), links: 1 } },
    when: equals("version", version),
  };
}

/** Of an address that came with an import and stood among the others of it until now. Fails when somebody was faster. */
export function firstRow({ isPacked: _, ...address }: StoredAddress): Write {
  return { put: { ...keys.address(address.companyId, address.id), ...address }, when: absent };
}

/** The address, or `undefined` when the company has none with this id: its own row, or among those of an import. */
export async function findAddress({ table }: World, companyId: number, id: number): Promise<StoredAddress | undefined> {
  const items = await table.batchGet([keys.address(companyId, id), keys.addressPack(companyId, blockOf(id))]);
  const own = items.find((item) => !isPack(item));
  if (own !== undefined) return StoredAddress.parse(own);
  const [pack] = items;
  if (pack === undefined) return undefined;
  const { importId, addresses } = unpackAddresses(pack);
  const found = addresses.find((address) => address.id === id);
  return found !== undefined && (await isPublished(table, companyId, importId)) ? found : undefined;
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

/** A row of its own holds in place of what stands among the addresses of an import. */
async function readBlock(table: Table, companyId: number, block: number): Promise<Address[]> {
  const addresses = new Map<number, Address>();
  const packs: Item[] = [];
  for await (const item of table.query(keys.addressBlock(companyId, block))) {
    if (isPack(item)) packs.push(item);
    else keepFirst(addresses, Address.parse(item));
  }
  for (const pack of packs) {
    for (const address of unpackAddresses(pack).addresses) keepFirst(addresses, presentAddress(address));
  }
  return [...addresses.values()].sort((a, b) => a.id - b.id);
}

function keepFirst(addresses: Map<number, Address>, address: Address): void {
  if (!addresses.has(address.id)) addresses.set(address.id, address);
}

const Range = z.object({ from: z.int(), to: z.int(), importId: z.optional(z.string()) });

/** Those of an import are not looked at before it is completed. Ranges come in the order of their first block and do not overlap. */
async function blocksFrom(table: Table, companyId: number, first: number): Promise<number[]> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.addressRanges(companyId))) {
    const { from, to, importId } = Range.parse(item);
    if (importId !== undefined) continue;
    for (let block = Math.max(from, first); block <= to; block++) blocks.push(block);
  }
  return blocks;
}

/** Does the input say what the address already says? */
export const sameAddress = (address: Address | null, input: NewAddress): boolean =>
  address !== null && isSame(address, addressFrom(address.id, input));
