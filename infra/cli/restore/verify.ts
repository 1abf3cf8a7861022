/** Checks the company index and the deliveries of every company of a table. */
import type { Clock } from "#shared/clock.ts";
import { rebuild } from "#shared/company-index/repair/rebuild.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { type Verdict, verifyIndex } from "#shared/prospects/index/verify.ts";
import { StoredCompany } from "#shared/reference/schema.ts";
import { reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { type RowStore, scanned } from "../company/rows.ts";

interface VerifyContext {
  readonly rows: RowStore;
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<unknown>;
  /** If true, an index that has faults or could not be checked completely is rebuilt. */
  readonly isRepairing: boolean;
  readonly report: (line: string) => void;
}

const RECHECKS = 2;
const BETWEEN_CHECKS_MS = 3_000;

/** Checks the companies one after the other. Returns the number of companies with faults. */
export async function verifyAll(context: VerifyContext): Promise<number> {
  let faulty = 0;
  for await (const companyId of companiesOf(context.rows)) {
    const faults = await faultsOf(context, companyId);
    context.report(`company ${companyId}: ${faultReport(faults)}`);
    if (faults.length > 0) faulty++;
  }
  return faulty;
}

export const FAULTS_SHOWN = 10;

export function faultReport(faults: readonly string[]): string {
  if (faults.length === 0) return "no faults";
  const more = faults.length > FAULTS_SHOWN ? [`and ${faults.length - FAULTS_SHOWN} more`] : [];
  const count = `${faults.length} ${faults.length === 1 ? "fault" : "faults"}`;
  return `${count}: ${[...faults.slice(0, FAULTS_SHOWN), ...more].join("; ")}`;
}

async function faultsOf({ rows: { table }, clock, wait, isRepairing }: VerifyContext, companyId: number) {
  const records = indexRecords(table);
  let verdict = await verifyIndex(table, records, companyId);
  if (isRepairing && verdict.faults.length + verdict.unexamined > 0) {
    await rebuild({ table, clock }, records, companyId);
    verdict = await verifyIndex(table, records, companyId);
  }
  const again = { again: RECHECKS, wait: () => wait(BETWEEN_CHECKS_MS) };
  const { faults } = await reconcile({ table, clock }, companyId, again);
  return [...indexFaults(verdict).map((fault) => `index: ${fault}`), ...faults.map((fault) => `delivery: ${fault}`)];
}

/**
 * Returns the faults of a check. A differing record is a fault only if it differs a second time, and at most 10 000 records are compared
 * again. The number of records that were not compared again comes first, because a report shows only the first faults.
 */
export const indexFaults = ({ faults, unexamined }: Pick<Verdict, "faults" | "unexamined">): readonly string[] =>
  unexamined === 0 ? faults : [`${unexamined} more records differed and were not compared again`, ...faults];

async function* companiesOf(store: RowStore): AsyncGenerator<number> {
  const ofCompanies = { FilterExpression: "sk = :company", ExpressionAttributeValues: { ":company": "COMPANY" } };
  for await (const { rows } of scanned(store, ofCompanies)) {
    for (const item of rows) yield StoredCompany.parse(item).id;
  }
}
