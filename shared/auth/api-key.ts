/** The text of an API key: `pck_<id>_<secret><checksum>`. The checksum shows a misspelt key without a read of the table. */
import { createHash, randomInt, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Characters of the id of a key ring. The id of each key of a service account begins with the id of the account's key ring. */
export const RING_ID = 7;
const ID = 8;
const SECRET = 32;
const CHECKSUM = 6;
const FORM = `pck_[0-9A-Za-z]{${ID}}_[0-9A-Za-z]{${SECRET + CHECKSUM}}`;

/** The pattern of a whole Authorization header with an API key. API Gateway accepts headers of this and two other forms. */
export const KEY_PATTERN = `^[Bb][Ee][Aa][Rr][Ee][Rr] +${FORM}$`;
const header = new RegExp(KEY_PATTERN);

export const randomText = (length: number): string =>
  Array.from({ length }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join("");

function checksumOf(text: string): string {
  let rest = crc32(text);
  let checksum = "";
  while (checksum.length < CHECKSUM) {
    checksum = ALPHABET.charAt(rest % ALPHABET.length) + checksum;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return checksum;
}

/** Returns an unused id for a key. Ids of the ring's last four changes are not used, because functions refuse a revoked id for a minute. */
export function newKeyId(ring: string, changes: number, isTaken: (id: string) => boolean): string {
  for (let next = 11 * changes; ; next++) {
    const id = ring + ALPHABET.charAt(next % ALPHABET.length);
    if (!isTaken(id)) return id;
  }
}

export function newKey(id: string): string {
  const text = `pck_${id}_${randomText(SECRET)}`;
  return text + checksumOf(text);
}

/** Returns the API key in an Authorization header, even if its checksum is wrong. Undefined if the header contains no key. */
export const keyIn = (authorization: string): string | undefined =>
  header.test(authorization) ? authorization.slice(authorization.lastIndexOf(" ") + 1) : undefined;

export const hasChecksum = (key: string): boolean => key.slice(-CHECKSUM) === checksumOf(key.slice(0, -CHECKSUM));

export const idOf = (key: string): string => key.slice("pck_".length, "pck_".length + ID);
export const ringOf = (keyId: string): string => keyId.slice(0, RING_ID);

/** The table contains only this hash of the key. A fast hash is secure enough, because the key's secret is random and long. */
export const digestOf = (key: string): string => createHash("sha256").update(key).digest("base64url");

/** Takes the same time for all digests, so that the time of a refusal tells an attacker nothing about the stored digest. */
export const isSame = (digest: string, other: string): boolean =>
  timingSafeEqual(Buffer.from(digest, "base64url"), Buffer.from(other, "base64url"));
