/**
 * Replaces single lines of the service by the faulty lines of faults.json, and counts the faults that no test notices. The lines were drawn
 * at random, and a person has checked that each replacement is a real fault.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { at } from "#shared/at.ts";
import { copyOfService, countMissed, firstFailure, ROOT, testsOfFiles } from "./mutants.ts";

/** A line of a file without its indentation, and the faulty line that replaces it. */
const LineFault = z.object({ file: z.string(), line: z.string(), becomes: z.string() });
type Fault = z.infer<typeof LineFault> & { readonly name: string };

const linesOf = (path: string): string[] => readFileSync(path, "utf8").split("\n");

/**
 * Reads faults.json. `lost` contains the faults whose line does not occur exactly once in its file, because somebody has changed the file.
 */
export function storedFaults(): { readonly faults: readonly Fault[]; readonly lost: readonly Fault[] } {
  const all = z.array(LineFault).parse(JSON.parse(readFileSync(join(import.meta.dirname, "faults.json"), "utf8")));
  const named = all.map((fault) => ({ ...fault, name: `${fault.file} | ${fault.becomes}` }));
  const { faults = [], lost = [] } = Object.groupBy(named, ({ file, line }) => {
    const path = join(ROOT, file);
    return existsSync(path) && linesOf(path).filter((one) => one.trim() === line).length === 1 ? "faults" : "lost";
  });
  return { faults, lost };
}

/** Number of test files that run first: those that import the changed file through the fewest other files. */
const NEAREST = 15;

/** Applies each fault in turn, and runs the tests that can notice it. Returns the number of faults that no test notices. */
export async function missedFaults(faults: readonly Fault[]): Promise<number> {
  const copies = [copyOfService(), copyOfService()];
  const testsOf = testsOfFiles();
  return countMissed(faults, async ({ file, line, becomes }, worker) => {
    const directory = at(copies, worker);
    const path = join(directory, file);
    const lines = linesOf(path);
    writeFileSync(path, lines.map((one) => (one.trim() === line ? becomes : one)).join("\n"));
    const files = testsOf(file);
    const by = await firstFailure(directory, [{ files: files.slice(0, NEAREST) }, { files: files.slice(NEAREST) }]);
    writeFileSync(path, lines.join("\n"));
    return by;
  });
}
