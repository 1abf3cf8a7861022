/** Erases a company: its users at the identity provider, its files and its rows. A repeated command continues. */
import * as z from "zod/mini";
import { findPoolUser, removePoolUser, type UserPool } from "#shared/aws/cognito.ts";
import { countFiles, type FileStore, removeFiles } from "#shared/aws/s3-folders.ts";
import { type Clock, iso } from "#shared/clock.ts";
import { all, type Condition, exists, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { DUE_INDEX } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { DeployedRetention } from "../../settings/retention.ts";
import { allPrefixes } from "./export.ts";
import { countRows, keyOfRow, type RowStore, removeKeys, removeRows } from "./rows.ts";
import { type MarkedCompany, markedCompany, suspend, usersOf } from "./suspension.ts";

export interface ErasureContext {
  readonly rows: RowStore;
  /** Other tables that may contain the company, such as the old table after a restore. The service does not write to them. */
  readonly others: readonly RowStore[];
  readonly files: FileStore;
  /** Undefined if an external identity provider manages the users. */
  readonly pool: UserPool | undefined;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly progress?: (line: string) => void;
}

/** Milliseconds after a suspension until no function writes: API Gateway caches rights for 60 s, and a function runs up to 15 minutes. */
export const QUIET_MS = 16 * 60_000;
/**
 * Milliseconds from the removal of the webhooks to the removal of users, files and rows. SQS delays a message by at most 15 minutes, so the
 * deliverer gets all messages and cancels their deliveries in this time. A later message would set off the alarm `Delivery missing`.
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
 * Erases a company, and returns the record of the erasure. If only other tables still contain the company, erases it there. Throws if the
 * company is not suspended, or if requests or jobs may still write its rows. `confirmed` must be the name of the company.
 */
export async function eraseCompany(context: ErasureContext, companyId: number, confirmed: string): Promise<Erasure> {
  const company = await markedCompany(context.rows.table, companyId);
  if (company !== undefined) return eraseUsed(context, company, confirmed);
  const earlier = await erasureOf(context.rows.table, companyId);
  if (earlier === undefined) return eraseUnused(context, companyId, confirmed);
  await removeUsers(context, companyId);
  await eraseElsewhere(context, earlier);
  return earlier;
}

async function eraseUsed(context: ErasureContext, company: MarkedCompany, confirmed: string): Promise<Erasure> {
  const { rows, clock } = context;
  const companyId = company.id;
  assertConfirmed(company, confirmed);
  await assertQuiet(rows.table, clock, company);
  const { erasingAt, rowsBefore } = await markErasing(context, company);
  await suspend({ table: rows.table, clock }, companyId);
  await removeWebhooks(context, companyId);
  const early = Date.parse(erasingAt) + SETTLE_MS - clock.now();
  if (early > 0) {
    context.progress?.(`waits ${Math.ceil(early / 1_000)} s until the last deliveries have ended`);
    await context.wait(early);
  }
  await removeUsersAndFiles(context, companyId);
  await removeAllRows(context, rows, companyId);
  const erasure = await eraseElsewhere(context, erasureNow(context, companyId, rowsBefore));
  await recordErasure(rows, erasure, exists("erasingAt"));
  return erasure;
}

/**
 * Erases a company that was created after the restore point, but before the switch to the restored table. The service does not know this
 * company, so no function can write its rows, and it need not be suspended.
 */
async function eraseUnused(context: ErasureContext, companyId: number, confirmed: string): Promise<Erasure> {
  for (const other of context.others) {
    const company = await markedCompany(other.table, companyId);
    if (company === undefined) continue;
    assertConfirmed(company, confirmed);
    const rowsBefore = await countRows(other, companyId);
    await removeUsersAndFiles(context, companyId);
    // Record the erasure in the service's table first: a repeated command finds it there and continues.
    const erasure = erasureNow(context, companyId, rowsBefore);
    await recordErasure(context.rows, erasure);
    return eraseElsewhere(context, erasure);
  }
  throw new Error(`company ${companyId} is unknown`);
}

const erasureNow = ({ clock }: ErasureContext, companyId: number, rows: Erasure["rows"]): Erasure => ({
  type: "erasure",
  companyId,
  erasedAt: iso(clock.now()),
  rows,
});

async function eraseElsewhere(context: ErasureContext, erasure: Erasure): Promise<Erasure> {
  for (const other of context.others) {
    context.progress?.(`erases the company in the table ${other.tableName}, too`);
    await removeAllRows(context, other, erasure.companyId);
    await recordErasure(other, erasure);
  }
  return erasure;
}

/** Replaces the company's row with the record of the erasure in one transaction. An interruption could otherwise leave both or none. */
const recordErasure = ({ table }: RowStore, erasure: Erasure, when?: Condition): Promise<void> =>
  table.transact([
    { remove: keys.company(erasure.companyId), ...(when !== undefined && { when }) },
    { put: { ...keys.erasure(erasure.companyId), ...erasure } },
  ]);

export async function erasureOf(table: Table, companyId: number): Promise<Erasure | undefined> {
  const item = await table.get(keys.erasure(companyId));
  return item === undefined ? undefined : Erasure.parse(item);
}

/** Counts the rows and files that are left of a company, with strongly consistent reads of the tables. */
export async function remainsOf(
  { rows, others, files }: Pick<ErasureContext, "rows" | "others" | "files">,
  companyId: number,
) {
  const elsewhere: Record<string, Record<string, number>> = {};
  for (const other of others) elsewhere[other.tableName] = await countRows(other, companyId);
  return {
    rows: await countRows(rows, companyId),
    others: elsewhere,
    files: await countFiles(files, allPrefixes(companyId)),
  };
}

function assertConfirmed({ id, name }: MarkedCompany, confirmed: string): void {
  if (confirmed !== name) throw new Error(`--confirm must be the name of company ${id}: ${name}`);
}

export async function assertQuiet(table: Table, clock: Clock, { id, suspendedAt }: MarkedCompany): Promise<void> {
  if (suspendedAt === undefined) {
    throw new Error(`company ${id} is active: first run npm run company -- suspend --company ${id}`);
  }
  const quietAt = Date.parse(suspendedAt) + QUIET_MS;
  if (quietAt > clock.now()) {
    throw new Error(`requests from before the suspension may run until ${iso(quietAt)}: try again then`);
  }
  const jobs = await unfinishedJobs(table, id, clock.now());
  if (jobs > 0) {
    throw new Error(`${jobs} imports, exports or bulk jobs are not finished: they end by themselves, try again later`);
  }
}

const DAY_MS = 86_400_000;

/** Counts unfinished jobs, but no paused bulk jobs: nobody can resume these, and they write nothing until their end a month later. */
async function unfinishedJobs(table: Table, companyId: number, nowMs: number): Promise<number> {
  let jobs = 0;
  const upTo = iso(nowMs + DAY_MS);
  for await (const item of table.query({ pk: keys.jobShard, index: DUE_INDEX.name, upTo })) {
    if (keys.jobAt(keyOfRow(item))?.companyId === companyId) jobs++;
  }
  return jobs;
}

/** Stores `erasingAt`, so that the company cannot be resumed. Stores the counts of its rows for the report. */
async function markErasing({ rows, clock }: ErasureContext, { id, erasingAt, rowsBefore }: MarkedCompany) {
  if (erasingAt !== undefined && rowsBefore !== undefined) return { erasingAt, rowsBefore };
  const mark = { erasingAt: iso(clock.now()), rowsBefore: await countRows(rows, id) };
  await rows.table.write({ update: keys.company(id), change: { set: mark }, when: all(present, missing("erasingAt")) });
  return mark;
}

/** Removes the webhooks, before all other rows, so that no further delivery is created or sent. */
async function removeWebhooks({ rows }: ErasureContext, companyId: number): Promise<void> {
  const found = rows.table.query({ ...keys.webhooks(companyId), fields: ["pk", "sk"] });
  await removeKeys(rows, await Array.fromAsync(found, keyOfRow));
}

async function removeUsersAndFiles(context: ErasureContext, companyId: number): Promise<void> {
  const users = await removeUsers(context, companyId);
  const files = await removeFiles(context.files, allPrefixes(companyId));
  context.progress?.(`${users} users and ${files} files removed`);
}

/** Removes users from the user pool. Call this before their rows are removed, so that a repeated command finds them again. */
async function removeUsers({ rows, others, pool }: ErasureContext, companyId: number): Promise<number> {
  const removed = new Set<string>();
  for (const { table } of [rows, ...others]) {
    for await (const { email, sub } of usersOf(table, companyId)) {
      if (pool !== undefined) await removeFrom(pool, email.toLowerCase(), sub);
      removed.add(sub);
    }
  }
  return removed.size;
}

/** Removes a user from the pool. Compares the subject, because another company's user may have the same address. */
async function removeFrom(pool: UserPool, email: string, sub: string): Promise<void> {
  if ((await findPoolUser(pool, email))?.sub === sub) await removePoolUser(pool, email);
}

/** Removes all rows except the company's own row, by which a repeated command sees that the erasure is not complete. */
async function removeAllRows(
  { progress }: Pick<ErasureContext, "progress">,
  rows: RowStore,
  companyId: number,
): Promise<void> {
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

/** Days for which AWS keeps the last copy of a deleted table, if the table had point-in-time recovery. */
const LAST_COPY_DAYS = 35;

export function remainsUntil(erasedAt: string, retention: DeployedRetention): Record<string, string> {
  const after = (days: number): string => iso(Date.parse(erasedAt) + days * DAY_MS);
  return {
    "point-in-time recovery of each table": after(retention.recoveryDays),
    "last copies of deleted restored tables": after(LAST_COPY_DAYS),
    "stream of the table": after(1),
    "parts of unfinished uploads": after(1),
    "dead-letter queues": after(14),
    "memory of running functions": after(1),
    "log lines, which have ids and no names": after(retention.logDays),
    "AWS Backup": backups(retention, after),
  };
}

/** Says when the backups expire. AWS Backup sets the expiry when it makes a copy, so new settings do not change that of older copies. */
function backups(retention: DeployedRetention, after: (days: number) => string): string {
  const others = "copies made by hand, or under earlier settings, may remain longer";
  return retention.backupDays === 0
    ? `the plan makes no copies; ${others}`
    : `${after(retention.backupDays)}; ${others}`;
}
