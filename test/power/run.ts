/** `npm run power -- conditions | draw` adds faults to a copy of the service, and shows which of them the tests notice. */
import { parseArgs } from "node:util";
import { conditions, missedConditions } from "./conditions.ts";
import { missedFaults, storedFaults } from "./drawn-faults.ts";
import { keptConditions } from "./kept-conditions.ts";

const USAGE = `npm run power -- COMMAND [part of a name]
  conditions     drops each condition of a write in turn, except those that kept-conditions.ts lists
  draw           applies each fault of faults.json in turn
  --dry          only lists the faults, and says which entries of the two files no longer fit the code`;

const options = { dry: { type: "boolean", default: false } } as const;
const { positionals, values } = parseArgs({ options, allowPositionals: true });
const [command, part = ""] = positionals;

/** Returns the exit code: 0 if the tests miss at most `most` of the faults, and otherwise 1. */
async function run<F extends { readonly name: string }>(
  all: readonly F[],
  missedOf: (faults: readonly F[]) => Promise<number>,
  most: (count: number) => number,
): Promise<number> {
  const faults = all.filter(({ name }) => name.includes(part));
  for (const { name } of values.dry ? faults : []) console.log(name);
  return values.dry || (await missedOf(faults)) <= most(faults.length) ? 0 : 1;
}

if (command === "conditions") {
  const all = conditions();
  const unknown = Object.keys(keptConditions).filter((kept) => all.every(({ name }) => name !== kept));
  for (const name of unknown) console.log(`Remove it from kept-conditions.ts: ${name}`);
  const dropped = all.filter(({ name }) => !(name in keptConditions));
  process.exitCode = (await run(dropped, missedConditions, () => 0)) || Math.min(unknown.length, 1);
} else if (command === "draw") {
  const { faults, lost } = storedFaults();
  for (const { file, line } of lost)
    console.log(`Correct it in faults.json: ${file} does not have the line once: ${line}`);
  process.exitCode = (await run(faults, missedFaults, (count) => count / 10)) || Math.min(lost.length, 1);
} else {
  console.error(USAGE);
  process.exitCode = 2;
}
