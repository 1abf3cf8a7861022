/** Makes and finds the addresses of a company, and links prospects to them. */

import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, equals, present } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { blockOf, keys } from "#shared/db/keys.ts";
import { ApiError, notFound } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { addressFrom, isSame } from "#shared/prospects/address.ts";
import { isPack, unpackAddresses } from "#shared/prospects/address-pack.ts";
import { Address, type NewAddress, StoredAddress } from "#shared/prospects/address-schema.ts";
import { isPublished } from "#shared/prospects/published.ts";

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

/** Goes with the prospect that gives its copy up. It counts as a link, so that a change of the address that is under way looks again. */
export function unlinkWrite(stored: StoredAddress, prospectId: number): Write {
  const { prospectIds: _, ...others } = stored;
  // Among the others of its import it has this one prospect.
  if (stored.isPacked) return firstRow({ ...others, links: stored.links + 1 });
  return {
    update: keys.address(stored.companyId, stored.id),
    change: { add: { links: 1 }, drop: { prospectIds: new Set([prospectId]) } },
    when: present,
  };
}

/** Of an address that came with an import and stood among the others of it until now. Fails when somebody was faster. */
export function firstRow({ isPacked: _, ...address }: StoredAddress): Write {
  return { put: { ...keys.address(address.companyId, address.id), ...address }, when: absent };
}

/** The address, or `undefined` when the company has none with this id: its own row, or among those of an import. */
export async function findAddress(
  { table }: ApiContext,
  companyId: number,
  id: number,
): Promise<StoredAddress | undefined> {
  const items = await table.batchGet([keys.address(companyId, id), keys.addressPack(companyId, blockOf(id))]);
  const own = items.find((item) => !isPack(item));
  if (own !== undefined) return StoredAddress.parse(own);
  const [pack] = items;
  if (pack === undefined) return undefined;
  const { importId, addresses } = unpackAddresses(pack);
  const found = addresses.find((address) => address.id === id);
  return found !== undefined && (await isPublished(table, companyId, importId)) ? found : undefined;
}

export async function readAddress(context: ApiContext, companyId: number, id: number): Promise<StoredAddress> {
  const found = await findAddress(context, companyId, id);
  if (found === undefined) throw notFound("address");
  return found;
}

/** As the interface shows it and prospects hold it. */
export const presentAddress = (stored: StoredAddress): Address => Address.parse(stored);

export async function createAddress(context: ApiContext, companyId: number, input: NewAddress): Promise<Address> {
  const address = addressFrom(await context.ids.nextAddress(companyId), input);
  await context.commit([newAddressWrite(companyId, address, iso(context.clock.now()))], address);
  return address;
}

/** Does the input say what the address already says? */
export const sameAddress = (address: Address | null, input: NewAddress): boolean =>
  address !== null && isSame(address, addressFrom(address.id, input));
