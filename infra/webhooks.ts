/** `npm run webhooks -- reconcile --company N`: proves that every delivery of a company is where the books say it is. */
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { systemClock } from "#shared/clock.ts";
import { keys } from "#shared/db/keys.ts";
import { type Books, reconcile } from "#shared/deliveries/books.ts";
import { STACK_NAME } from "./stack-name.ts";
import { deployedTable, localTable } from "./table-in-use.ts";

const usage = `npm run webhooks -- reconcile --company N
    compares the ledger, the deliveries, their attempts, the due index and the gates, while all are in use
    [--stack NAME]   a deployed stack (default ${STACK_NAME}), even while a local service runs
exit code 0: the books balance, 1: faults, 2: wrong usage or no such company, 3: anything else`;

const FAULTS_SHOWN = 50;
/** What is at fault is looked at so often again: what is only changing is then over. */
const LOOKS = 3;
const BETWEEN_LOOKS_MS = 3_000;

const Input = z.object({
  command: z.literal("reconcile"),
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
  const { company, stack } = readInput();
  const local = stack === undefined ? await localTable() : undefined;
  const { table, label } = local ?? (await deployedTable(stack ?? STACK_NAME));
  const companyId = Number(company);
  if ((await table.get(keys.company(companyId))) === undefined) {
    throw new WrongUsage(`there is no company ${companyId} on ${label}`);
  }
  const looks = { again: LOOKS, wait: () => wait(BETWEEN_LOOKS_MS) };
  const books = await reconcile({ table, clock: systemClock }, companyId, looks);
  tell(companyId, books);
  return books.faults.length === 0 ? 0 : 1;
}

function tell(companyId: number, { faults, ...counts }: Books): void {
  for (const fault of faults.slice(0, FAULTS_SHOWN)) console.log(fault);
  if (faults.length > FAULTS_SHOWN) console.log(`and ${faults.length - FAULTS_SHOWN} more`);
  const rows: [string, number][] = [
    ["matched", counts.matched],
    ["= delivered", counts.delivered],
    ["+ waiting", counts.waiting],
    ["    kept by a paused webhook", counts.held],
    ["    at a gate", counts.gated],
    ["+ exhausted", counts.exhausted],
    ["+ cancelled", counts.cancelled],
    ["attempts", counts.attempts],
    ["faults", faults.length],
  ];
  console.log(`company ${companyId}`);
  for (const [name, count] of rows) console.log(`${name.padEnd(30)}${String(count).padStart(9)}`);
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = error instanceof WrongUsage ? 2 : 3;
  },
);
