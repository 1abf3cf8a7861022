/** Reads the feed of changes for one user as a device does: each request continues where the last one has ended. */
import type { Caller } from "#shared/auth/caller.ts";
import { metered } from "#shared/db/meter.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import type { ChangeItem, ChangesPage, ChangeType } from "#shared/sync/changes/schema.ts";
import { forgetRows } from "../harness/forget-rows.ts";

interface Options {
  readonly limit?: number;
  /** By default all types. */
  readonly types?: readonly ChangeType[];
  /** By default, the first request begins a snapshot. */
  readonly cursor?: string | undefined;
  /** True if each request reads the rows of prospects from the table, as a function does that has just started. */
  readonly forgets?: boolean;
}

export function feedOf(
  context: Parameters<typeof readChanges>[0],
  caller: Caller,
  { limit: most = 500, types, forgets = false, ...from }: Options = {},
) {
  let { cursor } = from;
  async function pull({ limit = most, reading = context }: { limit?: number; reading?: typeof context } = {}) {
    if (forgets) forgetRows(context.table, caller.companyId);
    const query = { limit, cursor, types: cursor === undefined && types !== undefined ? [...types] : undefined };
    const { result, usage } = await metered(() => readChanges(reading, caller, query));
    ({ cursor } = result);
    return { ...result, units: usage.readUnits, requests: usage.requests, rounds: usage.rounds };
  }
  async function pagesUntil(isLast: (page: ChangesPage) => boolean) {
    const pages: Awaited<ReturnType<typeof pull>>[] = [];
    for (;;) {
      const page = await pull();
      pages.push(page);
      if (isLast(page)) return pages;
    }
  }
  const rest = async (): Promise<ChangeItem[]> =>
    (await pagesUntil(({ hasMore }) => !hasMore)).flatMap(({ items }) => items);
  return { pull, pagesUntil, rest, cursor: () => cursor };
}
