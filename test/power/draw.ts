/**
 * Applies each fault of faults.json in turn and runs the tests of `npm test` that can notice it: unit tests that import the changed file,
 * and all API tests. The N nearest run first: `npm run power -- draw [--nearest N] [--from N]`. Prints which faults the tests catch. With
 * `--seed N`, it proposes new faults instead.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";
import { newScratch, ROOT, sourcesIn, testsNear } from "./mutants.ts";
import { propose } from "./proposals.ts";

const LineFault = z.object({ file: z.string(), line: z.string(), becomes: z.string() });
const Faults = z.object({ seed: z.int(), faults: z.array(LineFault) });

/** Returns the position of the line in its file. Throws if the file has no such line, because the service has changed. */
function placed({ file, line, becomes }: z.infer<typeof LineFault>) {
  const source = readFileSync(join(ROOT, file), "utf8");
  const before = /^\s*/.exec(line)?.[0].length ?? 0;
  const found = [...source.matchAll(new RegExp(`^[ ]*${escaped(line.slice(before))}$`, "gm"))];
  const [only, second] = found;
  if (only === undefined || second !== undefined) throw new Error(`${file} has ${found.length} lines "${line}"`);
  return { file, start: only.index, end: only.index + only[0].length, to: becomes };
}

export async function draw(args: string[]): Promise<boolean> {
  const options = { seed: { type: "string" }, nearest: { type: "string" }, from: { type: "string" } } as const;
  const { seed, nearest = "15", from = "1" } = parseArgs({ args, options }).values;
  if (seed !== undefined) {
    console.log(JSON.stringify(propose(Number(seed), 80), null, 2));
    return true;
  }
  const { faults } = Faults.parse(JSON.parse(readFileSync(join(import.meta.dirname, "faults.json"), "utf8")));
  const scratch = newScratch();
  const table: string[] = [];
  try {
    for (const [i, fault] of faults.entries()) {
      if (i + 1 < Number(from)) continue;
      const near = testsNear(fault.file);
      const all = new Set([...near, ...sourcesIn("test").filter((name) => name.endsWith(".api.test.ts"))]);
      const [first, rest] = [[...all].slice(0, Number(nearest)), [...all].slice(Number(nearest))];
      const begun = Date.now();
      const by = (await scratch.caught(placed(fault), first)) ?? (await scratch.caught(placed(fault), rest));
      const row = `| ${i + 1} | ${fault.file} | \`${fault.becomes || "(no line)"}\` | ${by ?? "NOT CAUGHT"} |`;
      console.log(`${row} ${Math.round((Date.now() - begun) / 1_000)} s`);
      table.push(row);
    }
  } finally {
    scratch.remove();
  }
  const missed = table.filter((row) => row.includes("NOT CAUGHT")).length;
  writeFileSync(join(ROOT, "node_modules/.cache/power-draw.md"), `${table.join("\n")}\n`);
  console.log(`${table.length - missed} of ${table.length} caught`);
  return missed * 10 <= table.length;
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
