/** `npm run power -- conditions | draw`: shows which faults the tests catch. */
import { parseArgs } from "node:util";
import { conditions } from "./conditions.ts";
import { proposedFaults, storedFaults } from "./drawn-faults.ts";
import { keptConditions } from "./kept-conditions.ts";
import { type Fault, missedFaults } from "./mutants.ts";

const USAGE = `npm run power -- COMMAND [part of a name]
  conditions     drops each condition of a write in turn, except those that kept-conditions.ts lists
  draw           applies each fault of faults.json in turn
  draw --seed N  proposes new faults, for a person who checks that each is a real fault`;

const options = { seed: { type: "string" } } as const;
const { positionals, values } = parseArgs({ options, allowPositionals: true });
const [command, part = ""] = positionals;
const chosen = (faults: readonly Fault[]): Fault[] => faults.filter(({ name }) => name.includes(part));

if (command === "conditions") {
  const all = conditions();
  const unknown = Object.keys(keptConditions).filter((kept) => all.every(({ name }) => name !== kept));
  for (const name of unknown) console.log(`Remove it from kept-conditions.ts: ${name}`);
  const dropped = all.filter(({ name }) => !(name in keptConditions));
  const missed = await missedFaults(chosen(dropped), { laws: true });
  process.exitCode = missed.length + unknown.length === 0 ? 0 : 1;
} else if (command === "draw" && values.seed !== undefined) {
  console.log(JSON.stringify(proposedFaults(Number(values.seed), 80), null, 2));
} else if (command === "draw") {
  const faults = chosen(storedFaults());
  const missed = await missedFaults(faults, { laws: false });
  process.exitCode = missed.length * 10 <= faults.length ? 0 : 1;
} else {
  console.error(USAGE);
  process.exitCode = 2;
}
