/** The outside world of the domain code as one small object, made once per warm function and replaceable whole in tests. */
import { type Clock, systemClock } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";
import { type Ids, leaseIds } from "#shared/db/ids.ts";
import { openTable, type Table } from "#shared/db/table.ts";

export interface World {
  readonly table: Table;
  readonly ids: Ids;
  readonly clock: Clock;
}

let made: World | undefined;

/** Nothing is read or connected before the first request asks. */
export function world(): World {
  if (made === undefined) {
    const table = openTable(setting("TABLE_NAME"));
    made = { table, ids: leaseIds(table), clock: systemClock };
  }
  return made;
}
