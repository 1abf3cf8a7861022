/** Chooses the throttle key of a company: API Gateway limits the requests with one such key (infra/stack/company-throttle.ts). */

/** Number of throttle keys for companies. Several companies may share a key: for two given companies, the probability is 1 / 32. */
export const THROTTLE_KEYS = 32;

/** The throttle key of requests with refused tokens. No company has it, so these requests do not use up the limit of a company. */
export const REFUSED = 0;

/** Returns the number of the company's throttle key, from 1. It is a hash, because ids are not consecutive and a modulo could be uneven. */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // The last steps of MurmurHash3: each bit of the result depends on each bit of the id.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
