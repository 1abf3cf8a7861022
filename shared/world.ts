/** The outside world of the domain code as one small object, made once per warm function and replaceable whole in tests. */
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import { openTable, type Table, type Write } from "#shared/db/table.ts";
import { secretsOn } from "#shared/secrets/provider.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";

export interface World {
  readonly table: Table;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly secrets: Secrets;
  /**
   * The one transaction of a POST, with the answer that will be given for it: under an idempotency key both are written
   * together, so that a repeated request finds either nothing or the whole answer.
   */
  readonly commit: (writes: readonly Write[], answer: unknown) => Promise<void>;
}

export const worldOn = (table: Table, clock: Clock = systemClock, secrets: Secrets = secretsOn(table)): World => ({
  table,
  ids: leaseIds(table),
  clock,
  secrets,
  commit: (writes) => table.transact(writes),
});

let made: World | undefined;

/** Nothing is read or connected before the first request asks. */
export function world(): World {
  made ??= worldOn(openTable(setting("TABLE_NAME")));
  return made;
}
