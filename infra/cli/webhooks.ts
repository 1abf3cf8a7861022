/** Implements `npm run webhooks -- reconcile --company N`: checks that no delivery is lost. */
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "#shared/clock.ts";
import type { Table } from "#shared/db/table.ts";
import { type Reconciliation, reconcile } from "#shared/webhooks/reconcile/reconcile.ts";
import { runCommands } from "./command/options.ts";
import { companyCommand, showFaults } from "./company-command.ts";
import { stackUsage } from "./table-in-use.ts";

const usage = `npm run webhooks -- reconcile --company N
    compares the expected deliveries with the stored ones, their attempts, the due index and the limiters, while all are in use
${stackUsage}
exit code 0: no faults, 1: faults, an unknown company or any other error, 2: wrong usage`;

/** A fault counts only if this number of further checks finds it again, because a change that is in progress can look like a fault. */
const RECHECKS = 3;
const BETWEEN_CHECKS_MS = 3_000;

async function reconcileCompany(table: Table, companyId: number): Promise<number> {
  const looks = { again: RECHECKS, wait: () => wait(BETWEEN_CHECKS_MS) };
  const reconciliation = await reconcile({ table, clock: systemClock }, companyId, looks);
  print(companyId, reconciliation);
  return reconciliation.faults.length === 0 ? 0 : 1;
}

function print(companyId: number, { faults, ...counts }: Reconciliation): void {
  showFaults(faults);
  const rows: [string, number][] = [
    ["matched", counts.matched],
    ["= delivered", counts.delivered],
    ["+ waiting", counts.waiting],
    ["    in the paused backlog", counts.paused],
    ["    in the throttled backlog", counts.throttled],
    ["+ exhausted", counts.exhausted],
    ["+ cancelled", counts.cancelled],
    ["attempts", counts.attempts],
    ["matches still to be fanned out", counts.expanding],
    ["faults", faults.length],
  ];
  console.log(`company ${companyId}`);
  for (const [name, count] of rows) console.log(`${name.padEnd(32)}${String(count).padStart(9)}`);
}

await runCommands(usage, { reconcile: companyCommand(reconcileCompany) });
