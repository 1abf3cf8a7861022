/** Removes the damaged rows of a company's activity, so that reports work again. Also converts rows to plain JSON for exports. */
import * as z from "zod/mini";
import {
  ActivityUnreadable,
  decoded,
  type FactState,
  factState,
  logRow,
  nextState,
} from "#shared/company-index/activity/log.ts";
import { decodeCells } from "#shared/company-index/activity/sums.ts";
import { decodeFacts, decodeImported } from "#shared/company-index/facts.ts";
import { isUnmoved, readHead } from "#shared/company-index/manifest.ts";
import type { AppContext } from "#shared/context.ts";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/plan.ts";

const Stored = z.object({ pk: z.string(), sk: z.string() });

/**
 * Returns the sort keys of the removed rows. If there are some, sets `since` of the state row to the present time. If a flush changes the
 * activity meanwhile, the repair begins again. Throws TableBusy if this happens 60 times.
 */
export const repairActivity = (context: Pick<AppContext, "table" | "clock">, companyId: number): Promise<string[]> =>
  optimistic(() => tryRepair(context, companyId));

/** Throws ConditionFailed if the head of the company index has changed since the first read. */
async function tryRepair({ table, clock }: Pick<AppContext, "table" | "clock">, companyId: number): Promise<string[]> {
  const head = readHead(await table.get(keys.indexHead(companyId)));
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
  // If the state row itself is damaged, nobody knows which rows of the log the sums contain. The repair assumes all of them, because it is
  // worse to count a fact twice than to lose it. `since` says that facts before now may be missing.
  const known: FactState = state ?? { since: null, version: head.version, upTo, days: [], bytes: 0 };
  // A report repeats its read until it finds a row of each day in `days`. The list must be empty, because the repair may remove such a row.
  await table.transact([
    nextState(companyId, { ...known, since: nowMs, days: [] }),
    { check: keys.indexHead(companyId), when: isUnmoved(head) },
  ]);
  await table.batchRemove(damaged.filter(({ sk }) => sk !== stateKey));
  return damaged.map(({ sk }) => sk);
}

function requireReadable(item: Item): void {
  if (readableActivity(item) === undefined) throw new Error("unknown type");
}

/** Returns the row with its binary fields decoded. Undefined if the row does not belong to a company's activity. */
export function readableActivity({ facts, imported, bytes, ...row }: Item): Item | undefined {
  if (row.type === "loggedFacts") {
    return {
      ...row,
      ...(facts instanceof Uint8Array && { facts: decodeFacts(facts) }),
      ...(imported instanceof Uint8Array && { imported: plainImport(imported) }),
    };
  }
  if (!(bytes instanceof Uint8Array)) return undefined;
  if (row.type === "daySum") return { ...row, cells: decodeCells(bytes) };
  if (row.type === "dayFacts") return { ...row, facts: decodeFacts(bytes) };
  return row.type === "dayImport" ? { ...row, imported: plainImport(bytes) } : undefined;
}

/** Returns the facts of an import as plain JSON. The bitmaps become base64. */
function plainImport(bytes: Uint8Array): Item {
  const { byStatus, created, withStatus, withNote, ...rest } = decodeImported(bytes);
  const base64 = (bits: Uint8Array): string => Buffer.from(bits).toString("base64");
  return {
    ...rest,
    byStatus: [...byStatus].map(([statusId, count]) => ({ statusId, count })),
    created: base64(created),
    withStatus: base64(withStatus),
    withNote: base64(withNote),
  };
}
