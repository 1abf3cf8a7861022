/** Lists the npm commands (the scripts in package.json) whose files are in the folders of admin commands, benches and load tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";

const Package = z.object({ scripts: z.record(z.string(), z.string()) });

/** Returns the name and the file of each command. */
export function commandFiles(): (readonly [name: string, file: string])[] {
  const { scripts } = Package.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  return Object.entries(scripts).flatMap(([name, script]) => {
    const [, file] = /^node ((?:infra\/cli|test\/bench|test\/load)\/\S+\.ts)$/.exec(script) ?? [];
    return file === undefined ? [] : [[name, file] as const];
  });
}
