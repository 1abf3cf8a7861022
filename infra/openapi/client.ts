/** Generates the types of the API client, docs/client/api.ts, from docs/openapi.json. */
import { spawnSync } from "node:child_process";
import { root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../command/options.ts";

const usage = `npm run client -- [options]
    --check   writes nothing, and fails if the committed types are out of date
exit code 0: success, 1: the check has failed, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args, { check: { type: "boolean" } }, usage);
  const generate = ["run", "--silent", "generate", "--workspace", "docs/client", "--"];
  if (options.check === true) generate.push("--check");
  const { status } = spawnSync("npm", generate, { cwd: root, stdio: "inherit" });
  return status === 0 ? exitCodes.done : exitCodes.failed;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
