/**
 * Faults of single lines. The stored ones (faults.json) were drawn by a seed, and a person has checked that each is a real fault. New ones are
 * proposed in the same way.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Fault, ROOT, sourcesIn } from "./mutants.ts";

/** The line has no indentation and is unique in its file. */
const LineFault = z.object({ file: z.string(), line: z.string(), becomes: z.string() });
type LineFault = z.infer<typeof LineFault>;
const Stored = z.object({ seed: z.int(), faults: z.array(LineFault) });

/** Throws if the file has no such line, because the service has changed. */
function placed({ file, line, becomes }: LineFault): Fault {
  const source = readFileSync(join(ROOT, file), "utf8");
  const found = [...source.matchAll(/^ *(.*)$/gm)].filter(([, text]) => text === line.trim());
  const [only, second] = found;
  if (only === undefined || second !== undefined) throw new Error(`${file} has ${found.length} lines "${line}"`);
  const { index: start } = only;
  return { name: `${file} | ${becomes.trim() || "(no line)"}`, file, start, end: start + only[0].length, to: becomes };
}

export const storedFaults = (): Fault[] =>
  Stored.parse(JSON.parse(readFileSync(join(import.meta.dirname, "faults.json"), "utf8"))).faults.map(placed);

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

/** Lines that decide nothing: imports, comments, types, documentation, and lines of brackets. */
const isCode = (line: string): boolean =>
  /[a-z]/.test(line) &&
  !/^(import|export (type|interface)|\*|\/[/*]|type |interface |readonly |\} from)/.test(line) &&
  !/["'`] *[+]?$|summary:|description:|explain\(|z\.|example|: "[A-Z]/.test(line);

/** The same text always gives the same number. */
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
