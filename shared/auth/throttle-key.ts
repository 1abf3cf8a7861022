/**
 * Chooses the throttle key of a company: the API key under which API Gateway counts the company's requests. If the requests exceed the rate
 * limit of the key, API Gateway answers 429 (infra/stack/company-throttle.ts).
 */

/** Number of throttle keys for companies. Several companies may share a key: for two given companies, the probability is 1 / 32. */
export const THROTTLE_KEYS = 32;

/**
 * The number of the throttle key for requests with refused tokens. No company has this key, so these requests never use up the limit of a
 * company.
 */
export const REFUSED = 0;

/**
 * Returns the number of the company's throttle key, from 1 to THROTTLE_KEYS. It comes from a hash of the company id. The id modulo
 * THROTTLE_KEYS could give many companies the same key, because company ids are not consecutive.
 */
export function throttleSlot(companyId: number): number {
  let hash = companyId ^ Math.floor(companyId / 2 ** 32);
  // The last steps of MurmurHash3. If one bit of the id changes, each bit of the result changes with a probability of one half.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) % THROTTLE_KEYS) + 1;
}

export const throttleKey = (prefix: string, slot: number): string => `${prefix}${String(slot).padStart(3, "0")}`;
