/**
 * Brings the counter of ids, the erasures and the results of deliveries in a restored table up to the state of the live table. Without
 * these results, the service would send the same webhooks again. There are two special cases:
 * - An operator switches back to the old table. Then `live` is the restored table, and `restored` is the old table.
 * - An operator restores a table that the service used before a switch. Then the newer data is in this earlier table and in the live table.
 */
import * as z from "zod/mini";
import type { Clock } from "#shared/clock.ts";
import { below, type Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { debounceKeys } from "#shared/db/webhook-keys.ts";
import { type Erasure, erasures } from "../company/erasure.ts";
import {
  byKey,
  groupsOf,
  keyOfRow,
  putRows,
  type RowStore,
  removeKeys,
  removeRows,
  scanned,
  textOf,
} from "../company/rows.ts";
import { markedCompany, unlessRefused } from "../company/suspension.ts";

export interface CarryContext {
  /** The table that the service uses now. */
  readonly live: RowStore;
  /** The table of `--from`, if it is not the live table. The service may have used it earlier. */
  readonly earlier?: RowStore;
  readonly restored: RowStore;
  readonly clock: Clock;
  readonly progress?: (line: string) => void;
}

const writtenTables = ({ live, earlier }: CarryContext): readonly RowStore[] =>
  earlier === undefined ? [live] : [earlier, live];

const Counter = z.object({ nextBlock: z.int() });

/** Blocks of ids by which the restored counter is above the live one, which rises until the switch. There are 7e13 blocks. */
const SPARE_BLOCKS = 1_000_000;

/** Raises the restored counter of ids. Otherwise the service would assign ids again that it has used after the restore point. */
export async function raiseIds(context: CarryContext): Promise<void> {
  const { restored } = context;
  const counters = await Promise.all(writtenTables(context).map(({ table }) => table.get(keys.idCounter())));
  const nextBlock = Math.max(...counters.map((counter) => Counter.parse(counter).nextBlock));
  const update = { update: keys.idCounter(), change: { set: { nextBlock: nextBlock + SPARE_BLOCKS } } };
  // After an earlier call, the restored counter is already about `SPARE_BLOCKS` above `nextBlock`, and the condition fails.
  const when = below("nextBlock", nextBlock + SPARE_BLOCKS / 2);
  await unlessRefused(() => restored.table.write({ ...update, when }));
}

export async function carryErasures(context: CarryContext): Promise<number[]> {
  const again: number[] = [];
  for (const { table } of writtenTables(context)) {
    for await (const erasure of erasures(table)) {
      if (await eraseAgain(context, erasure)) again.push(erasure.companyId);
    }
  }
  return again;
}

/** Returns false if the company is already erased: the record of the erasure exists, and the company's own row does not. */
async function eraseAgain({ restored, progress }: CarryContext, erasure: Erasure): Promise<boolean> {
  const { companyId } = erasure;
  const isKnown = (await restored.table.get(keys.erasure(companyId))) !== undefined;
  if (isKnown && (await markedCompany(restored.table, companyId)) === undefined) return false;
  const rows = await removeRows(restored, companyId, () => false);
  await restored.table.batchPut([{ ...keys.erasure(companyId), ...erasure }]);
  progress?.(`company ${companyId} erased again: ${rows} rows`);
  return true;
}

export interface CarriedDeliveries {
  /** Deliveries that waited at the restore point and have ended since. They are not sent again. */
  readonly ended: number;
  /** Deliveries that still wait. The service sends them after the switch. */
  readonly waiting: number;
  /** Keys of at most 100 other rows with unfinished webhook work, such as a replay. The service may repeat webhooks of this work. */
  readonly continued: readonly string[];
}

const CONTINUED_SHOWN = 100;

/** Copies the state of deliveries that ended or were tried again since the restore point. Removes those whose current row has expired. */
export async function carryDeliveries(context: CarryContext): Promise<CarriedDeliveries> {
  let ended = 0;
  let last: CarriedDeliveries = { ended, waiting: 0, continued: [] };
  for (const written of writtenTables(context)) {
    last = await carryFrom(written, context);
    ended += last.ended;
  }
  return { ...last, ended };
}

async function carryFrom(written: RowStore, context: CarryContext): Promise<CarriedDeliveries> {
  const continued: string[] = [];
  const total = { ended: 0, waiting: 0, continued };
  for await (const { rows } of scanned(context.restored, { IndexName: DUE_INDEX.name })) {
    const due = rows.map(keyOfRow);
    const others = due.filter((key) => !isDelivery(key) && /#D#/.test(key.pk)).map(textOf);
    continued.push(...others.slice(0, CONTINUED_SHOWN - continued.length));
    for (const group of groupsOf(due.filter(isDelivery))) {
      const ended = await carryTogether(written, context, group);
      total.ended += ended;
      total.waiting += group.length - ended;
    }
  }
  return total;
}

const isDelivery = ({ pk, sk }: Key): boolean => /^C#\d+#D#\d+#\d+$/.test(pk) && /^D#[^#]+$/.test(sk);

const State = z.looseObject({
  id: z.string(),
  companyId: z.int(),
  webhookId: z.int(),
  registrationId: z.nullable(z.int()),
  recordId: z.optional(z.int()),
  state: z.string(),
  attempt: z.int(),
  expiresAt: z.int(),
});
type State = z.infer<typeof State>;

/** Carries over the deliveries `waiting`. `written` is the live or the earlier table. Returns how many of these deliveries have ended. */
async function carryTogether(
  written: RowStore,
  { restored, clock }: CarryContext,
  waiting: readonly Key[],
): Promise<number> {
  const [now, then] = [await byKey(written, waiting), await byKey(restored, waiting)];
  let ended = 0;
  for (const key of waiting) {
    const [current, old] = [now.get(textOf(key)), then.get(textOf(key))];
    if (old === undefined) continue;
    // The restored row has not expired, so `written` never had this delivery. For example, it was created in the old table after the
    // restore, and the operator is switching back. It still waits, and the service sends it after the switch.
    if (current === undefined && State.parse(old).expiresAt * 1_000 > clock.now()) continue;
    const hasEnded = current === undefined || State.parse(current).state !== "waiting";
    // Close the window first: if the command is interrupted between the two writes, the delivery still waits, so a repeated command
    // completes both.
    if (hasEnded) await closeWindow(restored, State.parse(old));
    // The delivery ended and its row then expired.
    if (current === undefined) await removeKeys(restored, [key]);
    else if (isFurther(State.parse(current), State.parse(old))) await copyDelivery(written, restored, key, current);
    if (hasEnded) ended++;
  }
  return ended;
}

const isFurther = (current: State, old: State): boolean => current.state !== "waiting" || current.attempt > old.attempt;

async function copyDelivery(written: RowStore, restored: RowStore, key: Key, current: Item): Promise<void> {
  const attempts = written.table.query({ pk: key.pk, begins: `${key.sk}#T#` });
  await putRows(restored, await Array.fromAsync(attempts, (row) => ({ ...row, ...keyOfRow(row) })));
  // Write the delivery after its attempts: until this write it still waits, so a repeated command finds it again.
  await putRows(restored, [{ ...current, ...key }]);
}

const Window = z.looseObject({ deliveryId: z.string() });

/** Removes the debounce window of an ended delivery. Otherwise further events would be added to the delivery, and never be sent. */
async function closeWindow(restored: RowStore, { id, companyId, webhookId, registrationId, recordId }: State) {
  if (recordId === undefined || registrationId === null) return;
  const key = debounceKeys.window({ companyId, webhookId, registrationId, recordId });
  const window = z.safeParse(Window, await restored.table.get(key));
  if (window.success && window.data.deliveryId === id) await removeKeys(restored, [key]);
}

/** Returns one line for each import, export and bulk job that was unfinished at the restore point, at most 100 lines. */
export async function continuedJobs({ restored: { table } }: Pick<CarryContext, "restored">): Promise<string[]> {
  const found: Key[] = [];
  for await (const item of table.query({ pk: keys.jobShard, index: DUE_INDEX.name })) {
    if (keys.jobAt(keyOfRow(item)) !== undefined && found.length < CONTINUED_SHOWN) found.push(keyOfRow(item));
  }
  const lines: string[] = [];
  for (const row of await table.batchGet(found)) {
    const job = keys.jobAt(keyOfRow(row));
    if (job !== undefined) lines.push(`company ${job.companyId}: ${job.kind} ${job.id}, ${Job.parse(row).state}`);
  }
  return lines.toSorted();
}

const Job = z.looseObject({ state: z.string() });
