/**
 * Brings three kinds of data in a restored table up to the state of the live table: the counter of ids, the erasures of companies, and the
 * results of webhook deliveries. Without these results, the service would send webhooks twice.
 */
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import { below, type Item } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import { debounceKeys } from "#shared/db/webhook-keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import { erasures } from "../company/erasure.ts";
import { keyOfRow, putRows, ROWS_TOGETHER, type RowStore, removeKeys, removeRows } from "../company/rows.ts";
import { markedCompany } from "../company/suspension.ts";

export interface CarryContext {
  /** The table that the service uses now. */
  readonly live: RowStore;
  readonly restored: RowStore;
  readonly progress?: (line: string) => void;
}

const Counter = z.object({ nextBlock: z.int() });

/**
 * Number of blocks by which the counter in the restored table is raised above the counter in the live table. Each block has 128 ids. The
 * service continues to take blocks from the live table until the switch, and it will not take a million blocks by then. There are 7e13
 * blocks in total, so the skipped blocks do not matter.
 */
const SPARE_BLOCKS = 1_000_000;

/**
 * Raises the counter of ids in the restored table. Otherwise the service would assign ids again that it has used after the restore point.
 */
export async function raiseIds({ live, restored }: CarryContext): Promise<void> {
  const { nextBlock } = Counter.parse(await live.table.get(keys.idCounter()));
  const update = { update: keys.idCounter(), change: { set: { nextBlock: nextBlock + SPARE_BLOCKS } } };
  try {
    // If the command is repeated, the counter is already high enough. The condition keeps each repetition from raising it further.
    await restored.table.write({ ...update, when: below("nextBlock", nextBlock + SPARE_BLOCKS / 2) });
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
  }
}

/**
 * Erases companies in the restored table if they were erased in the live table after the restore point. Returns the ids of these companies.
 */
export async function carryErasures({ live, restored, progress }: CarryContext): Promise<number[]> {
  const again: number[] = [];
  for await (const erasure of erasures(live.table)) {
    const { companyId } = erasure;
    const isKnown = (await restored.table.get(keys.erasure(companyId))) !== undefined;
    if (isKnown && (await markedCompany(restored.table, companyId)) === undefined) continue;
    const rows = await removeRows(restored, companyId, () => false);
    await restored.table.batchPut([{ ...keys.erasure(companyId), ...erasure }]);
    progress?.(`company ${companyId} erased again: ${rows} rows`);
    again.push(companyId);
  }
  return again;
}

export interface CarriedDeliveries {
  /** Number of deliveries that waited at the restore point and have ended since then. They are not sent again. */
  readonly ended: number;
  /** Number of deliveries that wait in both tables. The service sends them after it has switched to the restored table. */
  readonly waiting: number;
  /**
   * The keys of at most 100 other rows with webhook work that was unfinished at the restore point, for example a replay. The service
   * continues this work from the restored state, so it can send the same webhook twice.
   */
  readonly continued: readonly string[];
}

const CONTINUED_SHOWN = 100;

/** Copies the state of each delivery that waits in the restored table but has ended or was tried again according to the live table. */
export async function carryDeliveries({ live, restored }: CarryContext): Promise<CarriedDeliveries> {
  const continued: string[] = [];
  const total = { ended: 0, waiting: 0, continued };
  for await (const page of duePages(restored)) {
    const [deliveries, others] = partition(page, isDelivery);
    for (const { pk, sk } of others.filter(({ pk }) => /#D#/.test(pk))) {
      if (continued.length < CONTINUED_SHOWN) continued.push(`${pk} ${sk}`);
    }
    for (let first = 0; first < deliveries.length; first += ROWS_TOGETHER) {
      const ended = await carryTogether(live, restored, deliveries.slice(first, first + ROWS_TOGETHER));
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
});
type State = z.infer<typeof State>;

/** Copies the states of the deliveries in `waiting` to the restored table. Returns how many of them have ended in the live table. */
async function carryTogether(live: RowStore, restored: RowStore, waiting: readonly Key[]): Promise<number> {
  const byKey = async ({ table }: RowStore) =>
    new Map((await table.batchGet(waiting)).map((item) => [textOf(keyOfRow(item)), item]));
  const [now, then] = [await byKey(live), await byKey(restored)];
  let ended = 0;
  for (const key of waiting) {
    const [current, old] = [now.get(textOf(key)), then.get(textOf(key))];
    if (old === undefined) continue;
    const hasEnded = current === undefined || State.parse(current).state !== "waiting";
    // Close the debounce window before the delivery changes. If the command is interrupted between the two writes, the delivery still
    // waits. So a repeated command finds the delivery again and completes both writes.
    if (hasEnded) await closeWindow(restored, State.parse(old));
    // The live table no longer contains this delivery, because the delivery ended and its row then expired.
    if (current === undefined) await removeKeys(restored, [key]);
    else if (isFurther(State.parse(current), State.parse(old))) await copyDelivery(live, restored, key, current);
    if (hasEnded) ended++;
  }
  return ended;
}

const isFurther = (current: State, old: State): boolean => current.state !== "waiting" || current.attempt > old.attempt;

async function copyDelivery(live: RowStore, restored: RowStore, key: Key, current: Item): Promise<void> {
  let rows: (Key & Item)[] = [];
  for await (const attempt of live.table.query({ pk: key.pk, begins: `${key.sk}#T#` })) {
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
 * Removes the debounce window of a delivery that has ended. If the window stayed open, further events would be added to this delivery and
 * would never be sent.
 */
async function closeWindow(restored: RowStore, { id, companyId, webhookId, registrationId, recordId }: State) {
  if (recordId === undefined || registrationId === null) return;
  const key = debounceKeys.window({ companyId, webhookId, registrationId, recordId });
  const window = z.safeParse(Window, await restored.table.get(key));
  if (window.success && window.data.deliveryId === id) await removeKeys(restored, [key]);
}

const textOf = ({ pk, sk }: Key): string => `${pk} ${sk}`;

/** Yields the keys of all rows that wait for work, which the due index lists. */
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
