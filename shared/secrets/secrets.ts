/**
 * Secrets at rest: each company has a data key, which is stored wrapped by the key service and kept unwrapped in a warm function
 * for a while. So secrets cost no call of that service but the first.
 */
import { createSecretKey, type KeyObject } from "node:crypto";
import { performance } from "node:perf_hooks";
import * as z from "zod/mini";
import type { KeyContext, Kms } from "#shared/aws/kms.ts";
import { iso, systemClock } from "#shared/clock.ts";
import { absent } from "#shared/db/expression.ts";
import type { Item } from "#shared/db/item.ts";
import type { Key } from "#shared/db/keys.ts";
import { secretKeys } from "#shared/db/secret-keys.ts";
import type { Table } from "#shared/db/table.ts";
import { failedAt } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";
import { Bytes, Id, Timestamp } from "#shared/schema.ts";
import { open, seal } from "#shared/secrets/envelope.ts";

export interface Secrets {
  /** Encrypts a text for one row of the company. The company's first one makes its data key. */
  seal(companyId: number, place: Key, text: string): Promise<Uint8Array>;
  /** Throws where it was not sealed for this row. */
  open(companyId: number, place: Key, sealed: Uint8Array): Promise<string>;
}

const StoredDataKey = z.object({
  type: z.literal("data-key"),
  companyId: Id,
  wrapped: Bytes,
  createdAt: Timestamp,
});

/** The policy of the functions names the purpose; see infra/keys.ts. */
export const PURPOSE = "webhook-secrets";
const contextOf = (companyId: number): KeyContext => ({ purpose: PURPOSE, companyId: String(companyId) });

interface Kept {
  readonly key: Promise<KeyObject>;
  readonly untilMs: number;
}

/** Nothing is read or connected before the first secret. `now` is a clock in milliseconds that never goes back. */
export function openSecrets(table: Table, kms: () => Kms, now: () => number = () => performance.now()): Secrets {
  const kept = new Map<number, Kept>();
  let service: Kms | undefined;
  const serviceInUse = (): Kms => {
    service ??= kms();
    return service;
  };

  /** One call for all that want the key at a time; one that failed is not kept. */
  function keyOf(companyId: number, load: () => Promise<KeyObject>): Promise<KeyObject> {
    const known = kept.get(companyId);
    if (known !== undefined && known.untilMs > now()) return known.key;
    const entry: Kept = { key: load(), untilMs: now() + limits.dataKeyKeptMs };
    kept.delete(companyId);
    kept.set(companyId, entry);
    const [oldest] = kept.keys();
    if (kept.size > limits.dataKeysKept && oldest !== undefined) kept.delete(oldest);
    entry.key.catch(() => {
      if (kept.get(companyId) === entry) kept.delete(companyId);
    });
    return entry.key;
  }

  async function stored(companyId: number): Promise<KeyObject | undefined> {
    const item = await table.get(secretKeys.dataKey(companyId));
    return item === undefined ? undefined : unwrapped(companyId, item);
  }

  async function unwrapped(companyId: number, item: Item): Promise<KeyObject> {
    const { wrapped } = StoredDataKey.parse(item);
    return keyObject(await serviceInUse().unwrap(wrapped, contextOf(companyId)));
  }

  /** Several functions may make the company's first secret at once: the key that was written first is everybody's. */
  async function made(companyId: number): Promise<KeyObject> {
    const { plain, wrapped } = await serviceInUse().generateDataKey(contextOf(companyId));
    const row: z.infer<typeof StoredDataKey> = {
      type: "data-key",
      companyId,
      wrapped,
      createdAt: iso(systemClock.now()),
    };
    try {
      await table.write({ put: { ...secretKeys.dataKey(companyId), ...row }, when: absent });
      return keyObject(plain);
    } catch (error) {
      const first = failedAt(error, 0)?.item;
      if (first === undefined) throw error;
      return unwrapped(companyId, first);
    }
  }

  return {
    async seal(companyId, place, text) {
      const key = await keyOf(companyId, async () => (await stored(companyId)) ?? (await made(companyId)));
      return seal(key, place, text);
    },
    async open(companyId, place, sealed) {
      const key = await keyOf(companyId, async () => {
        const found = await stored(companyId);
        if (found === undefined) throw new Error(`company ${companyId} has no data key`);
        return found;
      });
      return open(key, place, sealed);
    },
  };
}

/** The bytes themselves are not kept where a dump of the heap would show them as they are. */
function keyObject(plain: Uint8Array): KeyObject {
  const key = createSecretKey(plain);
  plain.fill(0);
  return key;
}
