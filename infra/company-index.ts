/** `npm run index -- verify|rebuild --company N`: compares a company's index with its rows, or makes it anew from them. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { systemClock } from "#shared/clock.ts";
import { RebuildRefused, rebuild } from "#shared/company-index/rebuild.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { indexRecords } from "#shared/prospects/index-records.ts";
import { verifyIndex } from "#shared/prospects/verify-index.ts";
import { STACK_NAME } from "./stack-name.ts";
import { deployedTable, localTable } from "./table-in-use.ts";

const usage = `npm run index -- verify|rebuild --company N
    verify   compares the company's index with its rows, while both are in use
    rebuild  makes the index anew from the rows, while both are in use
    [--stack NAME]   a deployed stack (default ${STACK_NAME}), even while a local service runs
exit code 0: all is well, 1: faults, or a rebuild that was refused, 2: wrong usage or no such company, 3: anything else`;

const FAULTS_SHOWN = 50;
const PROGRESS_EVERY_MS = 2_000;

const Input = z.object({
  command: z.enum(["verify", "rebuild"]),
  company: z.string().check(z.regex(/^[1-9]\d{0,15}$/)),
  stack: z.optional(z.string()),
});

class WrongUsage extends Error {}

function readInput(): z.infer<typeof Input> {
  try {
    const options = { company: { type: "string" as const }, stack: { type: "string" as const } };
    const { positionals, values } = parseArgs({ allowPositionals: true, options });
    return Input.parse({ ...values, command: positionals.join(" ") });
  } catch {
    throw new WrongUsage(`usage: ${usage}`);
  }
}

/** Gives the exit code. */
async function main(): Promise<number> {
  const { command, company, stack } = readInput();
  const local = stack === undefined ? await localTable() : undefined;
  const { table, label } = local ?? (await deployedTable(stack ?? STACK_NAME));
  const companyId = Number(company);
  if ((await table.get(keys.company(companyId))) === undefined) {
    throw new WrongUsage(`there is no company ${companyId} on ${label}`);
  }
  return command === "verify" ? verify(table, companyId) : remake(table, companyId);
}

async function verify(table: Table, companyId: number): Promise<number> {
  const tell = progress();
  const verdict = await verifyIndex(table, indexRecords(table), companyId, {
    progress: (count) => tell(`${count} prospects compared`),
  });
  const { faults, unexamined, ...counts } = verdict;
  for (const fault of faults.slice(0, FAULTS_SHOWN)) console.log(fault);
  if (faults.length > FAULTS_SHOWN) console.log(`and ${faults.length - FAULTS_SHOWN} more`);
  if (unexamined > 0) console.log(`and ${unexamined} more records that differed and were not looked at again`);
  console.log(`company ${companyId}: ${listOf({ ...counts, faults: faults.length + unexamined })}`);
  return faults.length + unexamined === 0 ? 0 : 1;
}

async function remake(table: Table, companyId: number): Promise<number> {
  const tell = progress();
  const { replaced, staying, ...counts } = await rebuild(
    { table, clock: systemClock },
    indexRecords(table),
    companyId,
    {
      progress: (step, count) => tell(`${count} prospects ${step === "read" ? "read" : "stored"}`),
    },
  );
  console.log(`company ${companyId}: ${listOf(counts)}, in place of ${replaced} runs; ${staying} newer runs stay`);
  return 0;
}

const listOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");

/** Now and then a line on stderr. */
function progress(): (line: string) => void {
  let last = Date.now();
  return (line) => {
    if (Date.now() - last < PROGRESS_EVERY_MS) return;
    last = Date.now();
    console.error(line);
  };
}

function exitCodeOf(error: unknown): number {
  if (error instanceof WrongUsage) return 2;
  return error instanceof RebuildRefused ? 1 : 3;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = exitCodeOf(error);
  },
);
