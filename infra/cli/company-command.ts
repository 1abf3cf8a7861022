/** Runs an operator's command on one company: `npm run … -- COMMAND --company N [--stage NAME] [--stack NAME]`. */
import * as z from "zod/mini";
import * as keys from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { CompanyId } from "./command/accepted.ts";
import { argumentsOf, checked, commandNamed, optionsIn, runCommand } from "./command/options.ts";
import { chosenStack, stackInput, tableInUse } from "./table-in-use.ts";

/** Resolves with the exit code: 0, or 1 if it has found faults in the company's data. */
type CompanyWork = (table: Table, companyId: number) => Promise<number>;

const Input = z.object({ ...stackInput, company: CompanyId });

/** Sets the exit code: that of the command, 2 after wrong usage, or 1 for an unknown company or after any other error. */
export const companyCommand = (usage: string, commands: Readonly<Record<string, CompanyWork>>): Promise<void> =>
  runCommand(async () => {
    const { positionals, values } = argumentsOf(optionsIn(Input.shape), usage);
    const work = commandNamed(positionals, commands, usage);
    const { company, ...stack } = checked(Input, values, usage);
    const { table, label } = await tableInUse(chosenStack(stack));
    if ((await table.get(keys.company(company))) === undefined) throw new Error(`${label} has no company ${company}`);
    return work(table, company);
  });

const FAULTS_SHOWN = 50;

export function showFaults(faults: readonly string[]): void {
  for (const fault of faults.slice(0, FAULTS_SHOWN)) console.log(fault);
  if (faults.length > FAULTS_SHOWN) console.log(`and ${faults.length - FAULTS_SHOWN} more`);
}
