/**
 * Chooses the throttle key of a company. API Gateway counts the requests for each key and answers 429 above the limit of the key
 * (infra/stack/company-throttle.ts).
 */

/** The number of keys for companies. Two companies share a key with a probability of one in this number. */
export const THROTTLE_KEYS = 32;

/** Refused tokens have the key 0, so that they never use up the requests of a company. */
export const REFUSED = 0;

/** Returns the number of the company's key, from 1 to THROTTLE_KEYS. Company ids have gaps, so they are hashed and not divided. */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // The last steps of MurmurHash3, which make every bit of the id change every bit of the result with a probability of one half.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

/** Returns the value of the API key. */
export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
