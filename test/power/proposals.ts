/** Draws lines of the service by a seed and proposes a fault for each. A person checks that each is a real fault (faults.json). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, sourcesIn } from "./mutants.ts";

export interface LineFault {
  readonly file: string;
  /** The whole line without its indentation. It is unique in its file. */
  readonly line: string;
  readonly becomes: string;
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

/** Lines that decide nothing: imports, comments, types, documentation, and lines of brackets. */
const isCode = (line: string): boolean =>
  /[a-z]/.test(line) &&
  !/^(import|export (type|interface)|\*|\/[/*]|type |interface |readonly |\} from)/.test(line) &&
  !/["'`] *[+]?$|summary:|description:|explain\(|z\.|example|: "[A-Z]/.test(line);

/** Returns a generator of pseudo-random numbers from 0 to 1 (the algorithm mulberry32). The same seed gives the same numbers. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function propose(seed: number, count: number): LineFault[] {
  const lines = ["shared", "functions"].flatMap(sourcesIn).flatMap((file) => {
    const all = readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .map((line) => line.trim());
    return all
      .filter((line) => isCode(line) && all.indexOf(line) === all.lastIndexOf(line))
      .map((line) => ({ file, line }));
  });
  const next = random(seed);
  const drawn: LineFault[] = [];
  while (drawn.length < count) {
    const [one] = lines.splice(Math.floor(next() * lines.length), 1);
    if (one === undefined) break;
    const possible = operators.flatMap((operator) => operator(one.line) ?? []);
    const becomes = possible[Math.floor(next() * possible.length)];
    if (becomes !== undefined) drawn.push({ ...one, becomes });
  }
  return drawn;
}
