/**
 * Erases a company: its users at the identity provider, its files and its rows. Each step can be repeated. So an interrupted command
 * continues when it is run again.
 */
import * as z from "zod/mini";
import { type Clock, iso } from "#shared/clock.ts";
import { all, exists, missing, present } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { allPrefixes, countFiles, type FileStore, removeFiles } from "./files.ts";
import type { Pool, PoolUser } from "./pool.ts";
import { countRows, keyOfRow, ROWS_TOGETHER, type RowStore, removeKeys, removeRows } from "./rows.ts";
import { CommandRefused, type MarkedCompany, markedCompany, suspend, usersOf } from "./suspension.ts";

export interface ErasureContext {
  readonly rows: RowStore;
  readonly files: FileStore;
  /** The user pool. It is undefined if an external identity provider manages the users. */
  readonly pool: Pool | undefined;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly progress?: (line: string) => void;
}

/**
 * Time in milliseconds after the suspension during which functions may still write rows of the company. API Gateway accepts requests of the
 * company's users for 60 s more, because it caches the authorizer's result. The function of an accepted request runs at most 15 minutes.
 */
export const QUIET_MS = 16 * 60_000;
/**
 * Time in milliseconds from the start of the erasure to the removal of users, files and rows. The webhooks are removed at the start. SQS
 * delays a message by at most 15 minutes, so each queued message about a delivery arrives during this time, and its consumer cancels the
 * delivery. A message that arrives after the removal of the delivery's row sets off the alarm `Delivery missing`.
 */
const SETTLE_MS = 16 * 60_000;
/** Maximum number of passes over the table. A row that is written during one pass is removed in the next pass. */
const PASSES = 5;

export const Erasure = z.object({
  type: z.literal("erasure"),
  companyId: z.int(),
  erasedAt: z.string(),
  /** The numbers of the company's rows by type at the time when the erasure began. */
  rows: z.record(z.string(), z.int()),
});
export type Erasure = z.infer<typeof Erasure>;

/**
 * Erases a company. If it is already erased, returns the record of its erasure. Throws CommandRefused if the company is unknown or must not
 * be erased now.
 * @param confirmed the name of the company, which the operator has typed to confirm the erasure
 */
export async function eraseCompany(context: ErasureContext, companyId: number, confirmed: string): Promise<Erasure> {
  const { rows, clock } = context;
  const earlier = await erasureOf(rows.table, companyId);
  const company = await markedCompany(rows.table, companyId);
  if (company === undefined) {
    if (earlier !== undefined) return earlier;
    throw new CommandRefused(`company ${companyId} is unknown`);
  }
  await assertAllowed(context, company, confirmed);
  const { erasingAt, rowsBefore } = await markErasing(context, company);
  await suspend({ table: rows.table, clock }, companyId);
  await removeWebhooks(context, companyId);
  const early = Date.parse(erasingAt) + SETTLE_MS - clock.now();
  if (early > 0) {
    context.progress?.(`waits ${Math.ceil(early / 1_000)} s until the last deliveries have ended`);
    await context.wait(early);
  }
  const users = await removeUsers(context, companyId);
  const removed = await removeFiles(context.files, allPrefixes(companyId));
  context.progress?.(`${users} users and ${removed} files removed`);
  await removeAllRows(context, companyId);
  const erasure: Erasure = { type: "erasure", companyId, erasedAt: iso(clock.now()), rows: rowsBefore };
  // Both writes are in one transaction. Otherwise an interruption between them could leave neither the company's row nor the record of its
  // erasure.
  await rows.table.transact([
    { remove: keys.company(companyId), when: exists("erasingAt") },
    { put: { ...keys.erasure(companyId), ...erasure } },
  ]);
  return erasure;
}

export async function erasureOf(table: Table, companyId: number): Promise<Erasure | undefined> {
  const item = await table.get(keys.erasure(companyId));
  return item === undefined ? undefined : Erasure.parse(item);
}

/** Counts the rows and files of a company that still exist. The reads are strongly consistent. */
export async function remainsOf({ rows, files }: Pick<ErasureContext, "rows" | "files">, companyId: number) {
  return { rows: await countRows(rows, companyId), files: await countFiles(files, allPrefixes(companyId)) };
}

async function assertAllowed({ rows, clock }: ErasureContext, company: MarkedCompany, confirmed: string) {
  const { id, name } = company;
  if (confirmed !== name) throw new CommandRefused(`--confirm must be the name of company ${id}: ${name}`);
  await assertQuiet(rows.table, clock, company);
}

/** Throws CommandRefused unless the company is suspended and no running request or job can still write its rows. */
export async function assertQuiet(table: Table, clock: Clock, { id, suspendedAt }: MarkedCompany): Promise<void> {
  if (suspendedAt === undefined) {
    throw new CommandRefused(`company ${id} is active: first run npm run company -- suspend --company ${id}`);
  }
  const quietAt = Date.parse(suspendedAt) + QUIET_MS;
  if (quietAt > clock.now()) {
    throw new CommandRefused(`requests from before the suspension may run until ${iso(quietAt)}: try again then`);
  }
  const jobs = await unfinishedJobs(table, id, clock.now());
  if (jobs > 0) {
    throw new CommandRefused(
      `${jobs} imports, exports or bulk jobs are not finished: they end by themselves, try again later`,
    );
  }
}

const DAY_MS = 86_400_000;

/**
 * Counts the jobs that run or wait. The query reads only jobs that are due within a day, so it omits paused bulk jobs. A paused job is
 * due a month after the pause, and is then cancelled. No user of a suspended company can resume a paused job earlier.
 */
async function unfinishedJobs(table: Table, companyId: number, nowMs: number): Promise<number> {
  let jobs = 0;
  const upTo = iso(nowMs + DAY_MS);
  for await (const item of table.query({ pk: keys.jobShard, index: DUE_INDEX.name, upTo })) {
    if (keys.jobAt(keyOfRow(item))?.companyId === companyId) jobs++;
  }
  return jobs;
}

/** Counts the rows for the later report, and marks the company. A company with this mark cannot be resumed. */
async function markErasing({ rows, clock }: ErasureContext, { id, erasingAt, rowsBefore }: MarkedCompany) {
  if (erasingAt !== undefined && rowsBefore !== undefined) return { erasingAt, rowsBefore };
  const mark = { erasingAt: iso(clock.now()), rowsBefore: await countRows(rows, id) };
  await rows.table.write({ update: keys.company(id), change: { set: mark }, when: all(present, missing("erasingAt")) });
  return mark;
}

/** Removes the webhooks. The erasure removes them before all other rows, so that no further delivery is created or sent. */
async function removeWebhooks({ rows }: ErasureContext, companyId: number): Promise<void> {
  let found: Key[] = [];
  for await (const item of rows.table.query({ ...keys.webhooks(companyId), fields: ["pk", "sk"] })) {
    found.push(keyOfRow(item));
    if (found.length < ROWS_TOGETHER) continue;
    await removeKeys(rows, found);
    found = [];
  }
  if (found.length > 0) await removeKeys(rows, found);
}

/**
 * Removes the users from the identity provider. Their rows are removed only later, so that a repeated command finds the users again after
 * an interruption.
 */
async function removeUsers({ rows, pool }: ErasureContext, companyId: number): Promise<number> {
  let users = 0;
  for await (const { email, sub } of usersOf(rows.table, companyId)) {
    const user: PoolUser = { email: email.toLowerCase(), sub };
    await pool?.remove(user);
    users++;
  }
  return users;
}

/** Removes all rows except the company's own row. A repeated command needs this row to see that the erasure is not complete. */
async function removeAllRows({ rows, progress }: ErasureContext, companyId: number): Promise<void> {
  const { pk, sk } = keys.company(companyId);
  const report = (count: number): void => progress?.(`${count} rows removed`);
  for (let pass = 1; pass <= PASSES; pass++) {
    const removed = await removeRows(rows, companyId, (key) => key.pk === pk && key.sk === sk, report);
    if (removed === 0) return;
  }
  throw new Error(`rows of company ${companyId} keep appearing: run the command again`);
}

/** Yields the records of erased companies in the order of the company ids. */
export async function* erasures(table: Table): AsyncGenerator<Erasure> {
  for await (const item of table.query(keys.erasures())) yield Erasure.parse(item);
}
