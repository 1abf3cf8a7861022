/** Removes the damaged rows of a company's activity, so that reports work again. */
import * as z from "zod/mini";
import type { Clock } from "#shared/clock.ts";
import {
  ActivityUnreadable,
  decoded,
  type FactState,
  factState,
  logRow,
  nextState,
} from "#shared/company-index/activity/log.ts";
import { readableActivity } from "#shared/company-index/activity/readable.ts";
import { readHead } from "#shared/company-index/manifest.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

const Stored = z.object({ pk: z.string(), sk: z.string() });

/**
 * Removes the damaged rows, and records that activity is completely counted only from now on. Changes nothing if no row is damaged. Returns
 * the sort keys of the removed rows. The company may be in use, but a flush at the same moment can overwrite the recorded time with the
 * earlier one.
 */
export async function repairActivity(
  { table, clock }: { readonly table: Table; readonly clock: Clock },
  companyId: number,
): Promise<string[]> {
  const damaged: Key[] = [];
  const check = (item: Item, decode: () => unknown): boolean => {
    try {
      decode();
      return true;
    } catch (error) {
      if (!(error instanceof ActivityUnreadable)) throw error;
      damaged.push(Stored.parse(item));
      return false;
    }
  };
  let state: FactState | undefined;
  let upTo = "";
  const { pk: log, sk: stateKey } = activityKeys.factState(companyId);
  for await (const item of table.query({ pk: log })) {
    if (item.sk !== stateKey) check(item, () => logRow(item));
    else if (check(item, () => factState(item))) state = factState(item);
    if (item.sk !== stateKey) upTo = String(item.sk);
  }
  for await (const item of table.query(activityKeys.allDays(companyId))) {
    check(item, () => decoded(item.sk, () => requireReadable(item)));
  }
  if (damaged.length === 0) return [];
  const nowMs = clock.now();
  // If the state row itself is damaged, it is unknown which rows of the log the sums contain. All rows then count as contained, because
  // counting a row twice would be wrong.
  const { version } = readHead(await table.get(keys.indexHead(companyId)));
  const known: FactState = state ?? { since: null, version, upTo, days: [], bytes: 0 };
  // `days` becomes empty, because a report waits for the rows of these days, and they may be among the removed rows.
  await table.transact([nextState(companyId, { ...known, since: nowMs, days: [] })]);
  await table.batchRemove(damaged.filter(({ sk }) => sk !== stateKey));
  return damaged.map(({ sk }) => sk);
}

function requireReadable(item: Item): void {
  if (readableActivity(item) === undefined) throw new Error("unknown type");
}
