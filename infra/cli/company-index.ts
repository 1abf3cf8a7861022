/** `npm run index`: compares a company index with the company's prospects and notes, rebuilds it, or removes damaged rows of activity. */
import { systemClock } from "#shared/clock.ts";
import { repairActivity } from "#shared/company-index/repair/activity.ts";
import { RebuildRefused, rebuild } from "#shared/company-index/repair/rebuild.ts";
import type { Table } from "#shared/db/table.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { runCommands } from "./command/options.ts";
import { companyCommand, showFaults } from "./company-command.ts";
import { stackUsage } from "./table-in-use.ts";

const usage = `npm run index -- verify|rebuild|repair-activity --company N
    verify   compares the company's index with its rows, while both are in use
    rebuild  builds the index again from the rows, while both are in use
    repair-activity  removes damaged rows of the activity; reports then say that earlier activity is not completely counted
${stackUsage}
exit code 0: success, 1: faults, a refused rebuild, an unknown company or any other error, 2: wrong usage`;

const PROGRESS_EVERY_MS = 2_000;

async function verify(table: Table, companyId: number): Promise<number> {
  const report = progress();
  const verdict = await verifyIndex(table, indexRecords(table), companyId, {
    progress: (count) => report(`${count} prospects compared`),
  });
  const { faults, unexamined, ...counts } = verdict;
  showFaults(faults);
  if (unexamined > 0) console.log(`and ${unexamined} more records that differed and were not compared again`);
  console.log(`company ${companyId}: ${listOf({ ...counts, faults: faults.length + unexamined })}`);
  return faults.length + unexamined === 0 ? 0 : 1;
}

async function rebuildIndex(table: Table, companyId: number): Promise<number> {
  const report = progress();
  try {
    const { replaced, staying, ...counts } = await rebuild(
      { table, clock: systemClock },
      indexRecords(table),
      companyId,
      {
        progress: (step, count) => report(`${count} prospects ${step === "read" ? "read" : "stored"}`),
      },
    );
    console.log(`company ${companyId}: ${listOf(counts)}, replaced ${replaced} parts; ${staying} newer parts stay`);
    return 0;
  } catch (error) {
    if (!(error instanceof RebuildRefused)) throw error;
    console.error(error.message);
    return 1;
  }
}

async function repair(table: Table, companyId: number): Promise<number> {
  const removed = await repairActivity({ table, clock: systemClock }, companyId);
  for (const sortKey of removed) console.log(`removed ${sortKey}`);
  console.log(`company ${companyId}: ${removed.length} damaged rows of the activity removed`);
  return 0;
}

const listOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");

/** Returns a function that writes a line of progress to stderr. It drops lines, so that it writes at most one line every two seconds. */
function progress(): (line: string) => void {
  let last = Date.now();
  return (line) => {
    if (Date.now() - last < PROGRESS_EVERY_MS) return;
    last = Date.now();
    console.error(line);
  };
}

await runCommands(usage, {
  verify: companyCommand(verify),
  rebuild: companyCommand(rebuildIndex),
  "repair-activity": companyCommand(repair),
});
