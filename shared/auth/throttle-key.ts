/** Chooses the API key by which API Gateway limits a company's requests (infra/stack/company-throttle.ts). */

/** Number of throttle keys for companies. Several companies may share a key: for two given companies, the probability is 1 / 32. */
export const THROTTLE_KEYS = 32;

/** The key of requests with refused tokens. No company has this key, so these requests do not use up the limit of a company. */
export const REFUSED = 0;

/** Returns a number from 1 to THROTTLE_KEYS by a hash. Company ids are not consecutive, so a modulo of the ids could be uneven. */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // The last steps of MurmurHash3: each bit of the result depends on each bit of the id.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
