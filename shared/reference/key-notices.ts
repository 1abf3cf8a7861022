/** Finds the keys that end soon. The changed row makes the event `api_key.expiring`. */
import { noticed, ringWrite, StoredKeyRing } from "#shared/auth/key-ring.ts";
import { iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Rings that one invocation handles. The next one, a minute later, handles the others. */
const AT_ONCE = 500;

/** Returns the number of rings with a notice. */
export async function sweepKeyNotices({ table, clock }: Pick<AppContext, "table" | "clock">): Promise<number> {
  const now = iso(clock.now());
  let changed = 0;
  for await (const { pk, sk } of table.query({ pk: keys.keyShard, index: "due", upTo: now })) {
    if (changed === AT_ONCE) break;
    const item = await table.get({ pk: String(pk), sk: String(sk) });
    if (item === undefined) continue;
    const ring = StoredKeyRing.parse(item);
    const after = { rights: ring.rights, keys: ring.keys.map((key) => noticed(key, Date.parse(now))) };
    try {
      await table.transact([ringWrite(ring, after, now)]);
      changed++;
    } catch (error) {
      // Another change of the ring came first. The next sweep reads it again.
      if (!(error instanceof ConditionFailed)) throw error;
    }
  }
  return changed;
}
