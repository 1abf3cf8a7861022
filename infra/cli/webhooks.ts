/** `npm run webhooks -- COMMAND --company N`: proves that every delivery of a company is where the books say it is; encrypts secrets of before. */
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "#shared/clock.ts";
import type { Table } from "#shared/db/table.ts";
import { type Reconciliation, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { encryptSecrets } from "#shared/webhooks/subscriptions/write.ts";
import { STACK_NAME } from "../config.ts";
import { companyCommand, showFaults } from "./company-command.ts";
import type { TableInUse } from "./table-in-use.ts";

const usage = `npm run webhooks -- reconcile --company N
    compares the ledger, the deliveries, their attempts, the due index and the gates, while all are in use
npm run webhooks -- encrypt-secrets --company N
    encrypts the secrets of webhooks that were stored before there was encryption; done again, it does nothing more
    [--stack NAME]   a deployed stack (default ${STACK_NAME}), even while a local service runs
exit code 0: the books balance or all is encrypted, 1: faults, 2: wrong usage or no such company, 3: anything else`;

/** What is at fault is looked at so often again: what is only changing is then over. */
const RECHECKS = 3;
const BETWEEN_LOOKS_MS = 3_000;

async function balance(table: Table, companyId: number): Promise<number> {
  const looks = { again: RECHECKS, wait: () => wait(BETWEEN_LOOKS_MS) };
  const books = await reconcile({ table, clock: systemClock }, companyId, looks);
  tell(companyId, books);
  return books.faults.length === 0 ? 0 : 1;
}

function tell(companyId: number, { faults, ...counts }: Reconciliation): void {
  showFaults(faults);
  const rows: [string, number][] = [
    ["matched", counts.matched],
    ["= delivered", counts.delivered],
    ["+ waiting", counts.waiting],
    ["    kept by a paused webhook", counts.paused],
    ["    at a gate", counts.throttled],
    ["+ exhausted", counts.exhausted],
    ["+ cancelled", counts.cancelled],
    ["attempts", counts.attempts],
    ["matches still to be fanned out", counts.expanding],
    ["faults", faults.length],
  ];
  console.log(`company ${companyId}`);
  for (const [name, count] of rows) console.log(`${name.padEnd(32)}${String(count).padStart(9)}`);
}

async function encrypt(table: Table, companyId: number, { secrets }: TableInUse): Promise<number> {
  const { webhooks, encrypted } = await encryptSecrets(table, secrets(), companyId);
  console.log(`company ${companyId}: ${webhooks} webhooks, secrets of ${encrypted} encrypted now`);
  return 0;
}

await companyCommand(usage, { reconcile: balance, "encrypt-secrets": encrypt });
