/**
 * Chooses the throttle key of a company: the API key under which API Gateway counts the company's requests. Above the limit of the key,
 * the gateway answers 429 (infra/stack/company-throttle.ts).
 */

/** Number of throttle keys for companies. Two companies have the same key with a probability of one in this number. */
export const THROTTLE_KEYS = 32;

/** The key of requests with refused tokens. It is separate, so that such requests never use up the limit of a company. */
export const REFUSED = 0;

/** Returns the number of the company's key, from 1 to THROTTLE_KEYS. It is computed from a hash, because company ids have gaps. */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // These are the last steps of MurmurHash3. With them, every bit of the id changes every bit of the result with a probability of one
  // half.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
