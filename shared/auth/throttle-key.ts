/** Chooses the API key by which API Gateway limits a company's requests (infra/stack/company-throttle.ts). */

/** Two given companies share a key with a probability of 1 / 32. */
export const THROTTLE_KEYS = 32;

/** For refused tokens. No company has this key, so they never use up the limit of a company. */
export const REFUSED = 0;

/** From 1 to THROTTLE_KEYS, by a hash: company ids are not consecutive, so their modulo could give many companies the same key. */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // The last steps of MurmurHash3: each bit of the result depends on each bit of the id.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
