/** Makes the data of one company, except users, webhooks and jobs, equal to that in a restored table, while other companies work. */
import { isDeepStrictEqual } from "node:util";
import { iso } from "#shared/clock.ts";
import { unloggedFacts } from "#shared/company-index/activity/read.ts";
import { restartOfLog } from "#shared/company-index/manifest.ts";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { namesChange } from "#shared/reference/dictionary.ts";
import { COPIED_FROM_BACKUP_AT, publishedTypes } from "#shared/webhooks/events/row-events.ts";
import { assertQuiet } from "../company/erasure.ts";
import {
  byKey,
  companyPages,
  groupsOf,
  keyOfRow,
  putRows,
  type RowStore,
  removeKeys,
  textOf,
  typeOf,
} from "../company/rows.ts";
import { known, markedCompany } from "../company/suspension.ts";
import type { CarryContext } from "./carry-over.ts";
import { indexFaults } from "./verify.ts";

interface CompanyRestoreContext extends Omit<CarryContext, "earlier"> {
  /** The rebuild of the index waits this long for earlier writes and reads. Tests set a shorter wait. */
  readonly settleMs?: number;
}

/** Compares the two tables in each step, so a repeated call continues. Returns how many rows were `brought` back and `removed`. */
export async function restoreCompany(context: CompanyRestoreContext, companyId: number) {
  const { live, restored, clock, progress, ...options } = context;
  await assertQuiet(live.table, clock, await known(live.table, companyId));
  if ((await markedCompany(restored.table, companyId)) === undefined) {
    throw new Error(`the table ${restored.tableName} has no company ${companyId}`);
  }
  const copiedAt = iso(clock.now());
  let brought = 0;
  for await (const rows of chunksOf(restored, companyId, ({ pk, sk }) => isRestored(pk, sk) || isRange(pk))) {
    const current = await byKey(live, rows.map(keyOfRow));
    const different = rows.filter((row) => !isSame(row, current.get(textOf(row))));
    await putRows(
      live,
      different.map((row) => marked(row, copiedAt)),
    );
    brought += different.length;
    const passesThousand = brought % 1_000 < different.length;
    if (passesThousand) progress?.(`${brought} rows brought back`);
  }
  let removed = 0;
  for await (const rows of chunksOf(live, companyId, ({ pk, sk }) => isRestored(pk, sk) || isDropped(pk, sk))) {
    const kept = await byKey(restored, rows.map(keyOfRow));
    const extra = rows.map(keyOfRow).filter(({ pk, sk }) => isDropped(pk, sk) || !kept.has(textOf({ pk, sk })));
    await removeKeys(live, extra);
    removed += extra.length;
  }
  // Unflushed facts of the restored table are only in its index. The index is rebuilt and not restored, so copy them to the activity log.
  const facts = await unloggedFacts(restored.table, companyId);
  if (facts.length > 0) await live.table.transact(facts);
  // Raises the version of the statuses, tags and users. Functions cache these and listed prospects by this version, and ETags contain it.
  await live.table.transact(namesChange(companyId));
  const records = indexRecords(live.table);
  await rebuild({ table: live.table, clock }, records, companyId, options);
  // The change log does not contain the restored rows, so clients with a local copy must synchronize from the beginning.
  await live.table.transact([restartOfLog(companyId)]);
  const faults = indexFaults(await verifyIndex(live.table, records, companyId));
  return { brought, removed, faults };
}

/**
 * Returns true for rows that are restored: statuses, tags, prospects with all their records, addresses, territories, locators (`I`),
 * calendars (`K`), agendas (`KA`), activity, receipts of operations (`OP`) and ids that clients chose (`CR`). If the restore undoes an
 * operation, its receipt goes too, so that the device can send it again. Users and the company's own row are not restored, because users
 * could get back rights that they have lost. Webhooks and deliveries are not restored, because the same webhooks could be sent again.
 */
const isRestored = (pk: string, sk: string): boolean =>
  /^C#\d+#(?:P#.*|A#.*|I#.*|K#.*|KA#.*|OP#.*|CR#.*|T|TD|FL|FD)$/.test(pk) ||
  (/^C#\d+#REF$/.test(pk) && !/^(?:COMPANY$|USER#)/.test(sk));

/** Returns true for rows with ranges of ids. The restore removes none of them, because a running function may use one of the newer ones. */
const isRange = (pk: string): boolean => /^C#\d+#(?:PR|AR)$/.test(pk);

/** Rows to delete: unflushed entries would hide the restored rows, and stored responses may name records that no longer exist. */
const isDropped = (pk: string, sk: string): boolean =>
  /^C#\d+#(?:XN|IK#.*)$/.test(pk) || (/^C#\d+#X$/.test(pk) && sk.startsWith("D#"));

const published: ReadonlySet<string> = new Set(publishedTypes);

const marked = (row: Item, copiedAt: string): Key & Item => ({
  ...row,
  ...keyOfRow(row),
  ...(published.has(typeOf(row)) && { [COPIED_FROM_BACKUP_AT]: copiedAt }),
});

function isSame(row: Item, current: Item | undefined): boolean {
  if (current === undefined) return false;
  const plain = ({ [COPIED_FROM_BACKUP_AT]: _, ...rest }: Item): Item => rest;
  return isDeepStrictEqual(plain(row), plain(current));
}

async function* chunksOf(
  store: RowStore,
  companyId: number,
  test: (key: Key) => boolean,
): AsyncGenerator<readonly Item[]> {
  for await (const { rows } of companyPages(store, companyId)) {
    yield* groupsOf(rows.filter((row) => test(keyOfRow(row))));
  }
}
