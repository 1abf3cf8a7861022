/**
 * Replaces single lines of the service by faulty ones, and counts the faults that no test notices. The faults in faults.json were drawn at
 * random with a seed, and a person has checked that each is a real fault. `npm run power -- draw --seed N` proposes new faults.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { at } from "#shared/at.ts";
import { copyOfService, countMissed, firstFailure, ROOT, sourcesIn, testsOfFiles } from "./mutants.ts";

/** A line of a file, and the faulty line that replaces it. `line` has no indentation and occurs only once in its file. */
const LineFault = z.object({ file: z.string(), line: z.string(), becomes: z.string() });
type LineFault = z.infer<typeof LineFault>;
const Stored = z.object({ seed: z.int(), faults: z.array(LineFault) });

/** One fault: the text between `start` and `end` of a file becomes `to`. */
interface Fault {
  readonly name: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly to: string;
}

/**
 * Returns the position of the fault. Returns undefined if the file does not contain the line exactly once, because somebody has changed the
 * file since the fault was drawn.
 */
function placed({ file, line, becomes }: LineFault): Fault | undefined {
  const path = join(ROOT, file);
  const source = existsSync(path) ? readFileSync(path, "utf8") : "";
  const [only, second] = [...source.matchAll(/^ *(.*)$/gm)].filter(([, text]) => text === line.trim());
  if (only === undefined || second !== undefined) return undefined;
  const { index: start } = only;
  return { name: `${file} | ${becomes.trim() || "(no line)"}`, file, start, end: start + only[0].length, to: becomes };
}

/** Reads faults.json. `lost` contains the faults whose line no longer occurs exactly once in its file. */
export function storedFaults(): { readonly faults: readonly Fault[]; readonly lost: readonly LineFault[] } {
  const all = Stored.parse(JSON.parse(readFileSync(join(import.meta.dirname, "faults.json"), "utf8"))).faults;
  return {
    faults: all.map(placed).filter((fault) => fault !== undefined),
    lost: all.filter((fault) => placed(fault) === undefined),
  };
}

/** Number of test files that run first: those that import the changed file through the fewest other files. */
const NEAREST = 15;

/** Applies each fault in turn, and runs the tests that can notice it. Returns the number of faults that no test notices. */
export async function missedFaults(faults: readonly Fault[]): Promise<number> {
  const copies = [copyOfService(), copyOfService()];
  const testsOf = testsOfFiles();
  return countMissed(faults, async ({ file, start, end, to }, worker) => {
    const directory = at(copies, worker);
    const path = join(directory, file);
    const whole = readFileSync(path, "utf8");
    writeFileSync(path, whole.slice(0, start) + to + whole.slice(end));
    const files = testsOf(file);
    const by = await firstFailure(directory, [{ files: files.slice(0, NEAREST) }, { files: files.slice(NEAREST) }]);
    writeFileSync(path, whole);
    return by;
  });
}

type Operator = (line: string) => string | undefined;
const replaced =
  (pattern: RegExp, by: string): Operator =>
  (line) => {
    const changed = line.replace(pattern, by);
    return changed === line ? undefined : changed;
  };

const operators: readonly Operator[] = [
  replaced(/^(await [\w.#]+\(.*\));$/, ";"),
  replaced(/\bif \((.*)\) (return|throw|continue|break)\b/, "if (!($1)) $2"),
  replaced(/\bif \((.*)\) \{$/, "if (!($1)) {"),
  replaced(/ (<|>) /, " $1= "),
  replaced(/ (<|>)= /, " $1 "),
  replaced(/ === /, " !== "),
  replaced(/ !== /, " === "),
  replaced(/ && /, " || "),
  replaced(/ \|\| /, " && "),
  replaced(/\.filter\([^()]*(?:\([^()]*\)[^()]*)*\)/, ""),
  replaced(/\.toSorted\([^()]*(?:\([^()]*\)[^()]*)*\)/, ""),
  replaced(/^\.\.\.\(?[^,]*,$/, ""),
  replaced(/, \.\.\.[\w.()]+(?=[ ,}\])])/, ""),
  replaced(/(\w+)\((\w+), (\w+)\)/, "$1($3, $2)"),
  replaced(/ \+ 1\b/, ""),
  replaced(/ - 1\b/, ""),
  replaced(/ \+ /, " - "),
  replaced(/ \? (.*) : (.*)([;,])$/, " ? $2 : $1$3"),
  replaced(/^return .*[^{(]$/, "return undefined;"),
  replaced(/\btrue\b/, "false"),
  replaced(/\bfalse\b/, "true"),
];

/** Returns false for lines whose change is no fault: imports, comments, types, documentation, and lines of brackets. */
const isCode = (line: string): boolean =>
  /[a-z]/.test(line) &&
  !/^(import|export (type|interface)|\*|\/[/*]|type |interface |readonly |\} from)/.test(line) &&
  !/["'`] *[+]?$|summary:|description:|explain\(|z\.|example|: "[A-Z]/.test(line);

/** Returns a pseudo-random number that depends only on the text. */
const numberOf = (text: string): number => createHash("sha256").update(text).digest().readUInt32BE();

export function proposedFaults(seed: number, count: number): LineFault[] {
  const lines = ["shared", "functions"].flatMap(sourcesIn).flatMap((file) => {
    const all = readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .map((line) => line.trim());
    return all
      .filter((line) => isCode(line) && all.indexOf(line) === all.lastIndexOf(line))
      .map((line) => ({ file, line }));
  });
  let drawnNumbers = 0;
  const position = (count: number): number => numberOf(`${seed} ${drawnNumbers++}`) % count;
  const drawn: LineFault[] = [];
  while (drawn.length < count) {
    const [one] = lines.splice(position(lines.length), 1);
    if (one === undefined) break;
    const possible = operators.flatMap((operator) => operator(one.line) ?? []);
    const becomes = possible[position(possible.length)];
    if (becomes !== undefined) drawn.push({ ...one, becomes });
  }
  return drawn;
}
