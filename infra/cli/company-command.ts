/** Makes the commands of operators that work on one company of a deployment: `COMMAND --company N [--stage NAME] [--stack NAME]`. */
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { CompanyId } from "./command/accepted.ts";
import { command } from "./command/options.ts";
import { chosenStack, stackInput, tableInUse } from "./table-in-use.ts";

const Input = z.strictObject({ ...stackInput, company: CompanyId });

/** Makes a command on one company. `work` resolves with the exit code: 0, or 1 if it has found faults in the company's data. */
export const companyCommand = (work: (table: Table, companyId: number) => Promise<number>) =>
  command(Input, async ({ company, ...stack }) => {
    const { table, label } = await tableInUse(chosenStack(stack));
    if ((await table.get(keys.company(company))) === undefined) throw new Error(`${label} has no company ${company}`);
    return work(table, company);
  });

const FAULTS_SHOWN = 50;

export function showFaults(faults: readonly string[]): void {
  for (const fault of faults.slice(0, FAULTS_SHOWN)) console.log(fault);
  if (faults.length > FAULTS_SHOWN) console.log(`and ${faults.length - FAULTS_SHOWN} more`);
}
