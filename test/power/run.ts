/** `npm run power -- conditions | draw | catches`: shows which faults the tests catch. */
import { listCatches } from "./catches.ts";
import { dropConditions } from "./conditions.ts";
import { draw } from "./draw.ts";

const [command, ...rest] = process.argv.slice(2);
if (command === "conditions") process.exitCode = (await dropConditions(rest)) ? 0 : 1;
else if (command === "draw") process.exitCode = (await draw(rest)) ? 0 : 1;
else if (command === "catches") process.exitCode = (await listCatches(rest)) ? 0 : 1;
else {
  console.error(
    "npm run power -- conditions [part of a path] [--near] [--whole] | draw [--seed N] [--nearest N] [--from N] | catches [test files]",
  );
  process.exitCode = 2;
}
