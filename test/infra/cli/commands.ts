/** Lists the npm commands, which are the scripts in package.json. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";

const Package = z.object({ scripts: z.record(z.string(), z.string()) });

type Command = readonly [name: string, file: string];

/** Returns the name and the file of each admin command, each bench, the load tests, and the test of the documents for newcomers. */
export const commandFiles = (): Command[] =>
  scriptsThat(/^(?:exec )?node ((?:infra\/cli\/|test\/bench\/|test\/load\/|test\/newcomer)\S*\.ts)$/);

/** Returns the name and the file of each command that generates or checks files of the project. Each of these files exports `main`. */
export const generatorFiles = (): Command[] => scriptsThat(/^node (infra\/(?!cli\/|local\/)\S+\.ts)$/);

function scriptsThat(pattern: RegExp): Command[] {
  const { scripts } = Package.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  return Object.entries(scripts).flatMap(([name, script]) => {
    const [, file] = pattern.exec(script) ?? [];
    return file === undefined ? [] : [[name, file] as const];
  });
}
