/**
 * Brings three kinds of data in a restored table up to the state of the live table (the table that the service uses): the counter of ids,
 * the erasures of companies, and the results of webhook deliveries. Without the results of deliveries, the service would send the same
 * webhooks again. There are two special cases:
 * - An operator switches back from a restored table to the old table. Then `live` is the restored table, and `restored` is the old table.
 * - An operator restores a table that the service used before a switch to another table. Then the newer data is in two tables: in this
 *   earlier table, to which the service wrote before the switch, and in the live table.
 */
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import type { Clock } from "#shared/clock.ts";
import { below, type Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { debounceKeys } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { type Erasure, erasures } from "../company/erasure.ts";
import { keyOfRow, putRows, ROWS_TOGETHER, type RowStore, removeKeys, removeRows } from "../company/rows.ts";
import { markedCompany } from "../company/suspension.ts";

export interface CarryContext {
  /** The table that the service uses now. */
  readonly live: RowStore;
  /** The table of the option `--from`, if it is not the live table. The service may have used this table earlier. */
  readonly earlier?: RowStore;
  readonly restored: RowStore;
  readonly clock: Clock;
  readonly progress?: (line: string) => void;
}

/** Returns the tables to which the service has written. The live table is the last one. */
const writtenTables = ({ live, earlier }: CarryContext): readonly RowStore[] =>
  earlier === undefined ? [live] : [earlier, live];

const Counter = z.object({ nextBlock: z.int() });

/**
 * Number of blocks by which the counter in the restored table is raised above the counters in the other tables. Each block has 128 ids. The
 * service continues to take blocks from the live table until the switch, and it will not take a million blocks by then. There are 7e13
 * blocks in total, so the skipped blocks do not matter.
 */
const SPARE_BLOCKS = 1_000_000;

/**
 * Raises the counter of ids in the restored table. Otherwise the service would assign ids again that it has used after the restore point.
 */
export async function raiseIds(context: CarryContext): Promise<void> {
  const { restored } = context;
  const counters = await Promise.all(writtenTables(context).map(({ table }) => table.get(keys.idCounter())));
  const nextBlock = Math.max(...counters.map((counter) => Counter.parse(counter).nextBlock));
  const update = { update: keys.idCounter(), change: { set: { nextBlock: nextBlock + SPARE_BLOCKS } } };
  try {
    // After an earlier run of the command, the counter is already about `SPARE_BLOCKS` above the counter in the live table. The condition
    // then fails, so that a repeated command does not raise the counter further.
    await restored.table.write({ ...update, when: below("nextBlock", nextBlock + SPARE_BLOCKS / 2) });
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}

/** Erases companies in the restored table if they were erased after the restore point. Returns the ids of these companies. */
export async function carryErasures(context: CarryContext): Promise<number[]> {
  const again: number[] = [];
  for (const { table } of writtenTables(context)) {
    for await (const erasure of erasures(table)) {
      if (await eraseAgain(context, erasure)) again.push(erasure.companyId);
    }
  }
  return again;
}

/**
 * Erases a company in the restored table and returns true. Returns false if it is already erased there: the table has the record of the
 * erasure, and the company's own row no longer exists.
 */
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
  /** Number of deliveries that waited at the restore point and have ended since then. They are not sent again. */
  readonly ended: number;
  /** Number of deliveries that still wait. The service sends them after it has switched to the restored table. */
  readonly waiting: number;
  /**
   * The keys of at most 100 other rows with webhook work that was unfinished at the restore point, for example the replay of deliveries.
   * The service continues this work from the restored state, so it can send the same webhook twice.
   */
  readonly continued: readonly string[];
}

const CONTINUED_SHOWN = 100;

/**
 * Compares each delivery that waits in the restored table with the same delivery in the live table and in the earlier table. If the delivery
 * has ended or was tried again there, copies its state to the restored table. If its row there has expired, removes the delivery from the
 * restored table.
 */
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
  for await (const page of duePages(context.restored)) {
    const [deliveries, others] = partition(page, isDelivery);
    for (const { pk, sk } of others.filter(({ pk }) => /#D#/.test(pk))) {
      if (continued.length < CONTINUED_SHOWN) continued.push(`${pk} ${sk}`);
    }
    for (let first = 0; first < deliveries.length; first += ROWS_TOGETHER) {
      const ended = await carryTogether(written, context, deliveries.slice(first, first + ROWS_TOGETHER));
      total.ended += ended;
      total.waiting += Math.min(ROWS_TOGETHER, deliveries.length - first) - ended;
    }
  }
  return total;
}

const isDelivery = ({ pk, sk }: Key): boolean => /^C#\d+#D#\d+#\d+$/.test(pk) && /^D#[^#]+$/.test(sk);

function partition<T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] {
  return [all.filter(test), all.filter((one) => !test(one))];
}

const State = z.looseObject({
  id: z.string(),
  companyId: z.int(),
  webhookId: z.int(),
  registrationId: z.nullable(z.int()),
  recordId: z.optional(z.int()),
  state: z.string(),
  attempt: z.int(),
  /** Seconds since 1970. */
  expiresAt: z.int(),
});
type State = z.infer<typeof State>;

/**
 * Copies the states of the deliveries in `waiting` from `written` (the live or the earlier table) to the restored table. Returns how many
 * of these deliveries have ended.
 */
async function carryTogether(
  written: RowStore,
  { restored, clock }: CarryContext,
  waiting: readonly Key[],
): Promise<number> {
  const byKey = async ({ table }: RowStore) =>
    new Map((await table.batchGet(waiting)).map((item) => [textOf(keyOfRow(item)), item]));
  const [now, then] = [await byKey(written), await byKey(restored)];
  let ended = 0;
  for (const key of waiting) {
    const [current, old] = [now.get(textOf(key)), then.get(textOf(key))];
    if (old === undefined) continue;
    // A delivery's row is removed only after the row has expired. The row in `restored` has not expired, so `written` never had this
    // delivery. For example, the operator is switching back from a restored table (`written`) to the old table (`restored`), and the delivery
    // was created in the old table after the restore. It still waits, and the service sends it after the switch.
    if (current === undefined && State.parse(old).expiresAt * 1_000 > clock.now()) continue;
    const hasEnded = current === undefined || State.parse(current).state !== "waiting";
    // First close the debounce window (the row that adds further events to this delivery), and then change the delivery. If the command is
    // interrupted between the two writes, the delivery still waits. So a repeated command finds the delivery again and completes both
    // writes.
    if (hasEnded) await closeWindow(restored, State.parse(old));
    // `written` no longer contains this delivery, because the delivery ended and its row then expired.
    if (current === undefined) await removeKeys(restored, [key]);
    else if (isFurther(State.parse(current), State.parse(old))) await copyDelivery(written, restored, key, current);
    if (hasEnded) ended++;
  }
  return ended;
}

const isFurther = (current: State, old: State): boolean => current.state !== "waiting" || current.attempt > old.attempt;

async function copyDelivery(written: RowStore, restored: RowStore, key: Key, current: Item): Promise<void> {
  let rows: (Key & Item)[] = [];
  for await (const attempt of written.table.query({ pk: key.pk, begins: `${key.sk}#T#` })) {
    rows.push({ ...attempt, ...keyOfRow(attempt) });
    if (rows.length < ROWS_TOGETHER) continue;
    await putRows(restored, rows);
    rows = [];
  }
  if (rows.length > 0) await putRows(restored, rows);
  // Write the delivery after its attempts. If the command is interrupted before this write, the delivery still waits. So a repeated command
  // finds it again.
  await putRows(restored, [{ ...current, ...key }]);
}

const Window = z.looseObject({ deliveryId: z.string() });

/**
 * Removes the debounce window of a delivery that has ended. The window is a row. While it exists, further events about the same record are
 * added to the delivery. These events would never be sent, because the delivery has ended.
 */
async function closeWindow(restored: RowStore, { id, companyId, webhookId, registrationId, recordId }: State) {
  if (recordId === undefined || registrationId === null) return;
  const key = debounceKeys.window({ companyId, webhookId, registrationId, recordId });
  const window = z.safeParse(Window, await restored.table.get(key));
  if (window.success && window.data.deliveryId === id) await removeKeys(restored, [key]);
}

const textOf = ({ pk, sk }: Key): string => `${pk} ${sk}`;

/** Yields pages of the keys of all rows in the due index, which contains each row that waits for work at a certain time. */
async function* duePages({ client, tableName, reads }: RowStore): AsyncGenerator<readonly Key[]> {
  let from: Item | undefined;
  do {
    const command = new ScanCommand({
      TableName: tableName,
      IndexName: DUE_INDEX.name,
      ExclusiveStartKey: from,
      ReturnConsumedCapacity: "TOTAL",
    });
    const { Items = [], LastEvaluatedKey } = await reads.spend(async () => {
      const result = await client.send(command);
      return { result, units: result.ConsumedCapacity?.CapacityUnits ?? 0 };
    });
    yield Items.map(keyOfRow);
    from = LastEvaluatedKey;
  } while (from !== undefined);
}
