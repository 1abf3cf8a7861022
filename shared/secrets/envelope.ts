/** Text encrypted for one place of the table: AES-256-GCM, which fails where one bit, or the place, is another. */
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";
import type { Key } from "#shared/db/keys.ts";

/** First byte of what is sealed: how the rest is to be read. */
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** What is moved to another row does not open there. */
const placeOf = ({ pk, sk }: Key): Buffer => Buffer.from(JSON.stringify([VERSION, pk, sk]));

export function seal(key: KeyObject, place: Key, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES }).setAAD(placeOf(place));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return new Uint8Array(Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), sealed]));
}

/** Throws where it was not sealed with this key for this place. */
export function open(key: KeyObject, place: Key, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed);
  if (bytes[0] !== VERSION || bytes.length < HEAD_BYTES) throw new Error("this was not sealed by us");
  const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(placeOf(place))
    .setAuthTag(bytes.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]).toString("utf8");
}
