/**
 * Encrypts secrets with data keys. Each company has a data key for each purpose. KMS encrypts the data keys, and a warm function calls KMS
 * once an hour for each of them.
 */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import { LRUCache } from "lru-cache";
import * as z from "zod/mini";
import { type KeyContext, type Kms, openKms } from "#shared/aws/kms.ts";
import { iso, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import { absent, type Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { failedAt } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";
import { NotSealed, type Purpose, provideSecrets, type Secrets } from "#shared/secrets/secrets.ts";

/** Gives `secretsOn` its implementation in this Lambda function. Call it when the module of the handler is loaded. */
export const useKeyService = (): void =>
  provideSecrets((table) => openSecrets(table, () => openKms(setting("SECRETS_KEY_ARN"))));

export const StoredDataKey = z.object({
  type: z.literal("data-key"),
  companyId: Id,
  wrapped: Bytes,
  createdAt: Timestamp,
});

interface KeyOwner {
  readonly companyId: number;
  readonly purpose: Purpose;
}

const contextOf = ({ companyId, purpose }: KeyOwner): KeyContext => ({ purpose, companyId: String(companyId) });

const rowOf = ({ companyId, purpose }: KeyOwner): Key => keys.dataKey(companyId, purpose);

const KEYS_KEPT = 1_000;

interface CachedKey {
  readonly key: Promise<KeyObject>;
  readonly untilMs: number;
}

/** Reads no setting before the first call. `now` returns milliseconds of a monotonic clock. */
export function openSecrets(table: Table, connect: () => Kms, now: () => number = () => performance.now()): Secrets {
  const cache = new LRUCache<string, CachedKey>({ max: KEYS_KEPT });
  let connected: Kms | undefined;
  const kms = (): Kms => {
    connected ??= connect();
    return connected;
  };

  /** Returns a data key from the cache, or from `load`. Concurrent calls share one load. A failed load is not cached. */
  function keyOf({ companyId, purpose }: KeyOwner, load: () => Promise<KeyObject>): Promise<KeyObject> {
    const name = `${purpose} ${companyId}`;
    const cached = cache.get(name);
    if (cached !== undefined && cached.untilMs > now()) return cached.key;
    const entry: CachedKey = { key: load(), untilMs: now() + limits.dataKeyKeptMs };
    cache.set(name, entry);
    entry.key.catch(() => {
      if (cache.get(name) === entry) cache.delete(name);
    });
    return entry.key;
  }

  async function readKey(owner: KeyOwner): Promise<KeyObject | undefined> {
    const item = await table.get(rowOf(owner));
    return item === undefined ? undefined : unwrap(owner, item);
  }

  async function unwrap(owner: KeyOwner, item: Item): Promise<KeyObject> {
    const { wrapped } = StoredDataKey.parse(item);
    return keyObject(await kms().unwrap(wrapped, contextOf(owner)));
  }

  /** If several functions create a key at the same time, all of them use the one that was stored first. */
  async function createKey(owner: KeyOwner): Promise<KeyObject> {
    const { plain, wrapped } = await kms().generateDataKey(contextOf(owner));
    const row: z.infer<typeof StoredDataKey> = {
      type: "data-key",
      companyId: owner.companyId,
      wrapped,
      createdAt: iso(systemClock.now()),
    };
    try {
      await table.write({ put: { ...rowOf(owner), ...row }, when: absent });
      return keyObject(plain);
    } catch (error) {
      const first = failedAt(error, 0)?.item;
      if (first === undefined) throw error;
      return unwrap(owner, first);
    }
  }

  return {
    async seal(companyId, row, text, purpose = "webhook-secrets") {
      const owner = { companyId, purpose };
      const key = await keyOf(owner, async () => (await readKey(owner)) ?? (await createKey(owner)));
      return seal(key, row, text);
    },
    async open(companyId, row, sealed, purpose = "webhook-secrets") {
      const owner = { companyId, purpose };
      const key = await keyOf(owner, async () => {
        const found = await readKey(owner);
        if (found === undefined) throw new NotSealed(`company ${companyId} has no data key of ${purpose}`);
        return found;
      });
      return open(key, row, sealed);
    },
  };
}

/** Converts a data key to a KeyObject, whose content heap dumps do not show, and overwrites the plain bytes with zeros. */
function keyObject(plain: Uint8Array): KeyObject {
  const key = createSecretKey(plain);
  plain.fill(0);
  return key;
}

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** The authenticated data of AES-GCM contains the row's key, so that an encrypted text cannot be decrypted in another row. */
const authenticatedData = ({ pk, sk }: Key): Buffer => Buffer.from(JSON.stringify([VERSION, pk, sk]));

export function seal(key: KeyObject, row: Key, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES }).setAAD(authenticatedData(row));
  const encrypted = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return new Uint8Array(Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), encrypted]));
}

/** Throws NotSealed if the bytes are damaged, or were encrypted with another key or for another row. */
export function open(key: KeyObject, row: Key, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed);
  if (bytes[0] !== VERSION || bytes.length < HEAD_BYTES) throw new NotSealed("the bytes are not sealed text");
  const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(authenticatedData(row))
    .setAuthTag(bytes.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]).toString("utf8");
  } catch (cause) {
    throw new NotSealed("the text cannot be decrypted", { cause });
  }
}
