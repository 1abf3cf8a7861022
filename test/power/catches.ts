/**
 * Lists the handlers of errors in `shared` that no test enters: `npm run power -- catches [test files]`. Each `catch` of a copy of the
 * service records that it was entered. Without test files, it runs all tests of the gate on the copy.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newScratch, sourcesIn } from "./mutants.ts";

/** Why no test needs to enter some handlers. The keys are beginnings of their names. */
const exceptions: Readonly<Record<string, string>> = {
  "shared/smoke/": "the smoke test enters it only if the deployment that it checks does not answer as expected",
};
const reasonOf = (name: string): string | undefined =>
  Object.entries(exceptions).find(([beginning]) => name.startsWith(beginning))?.[1];

/** Records the name of an entered handler. It is in each file, because a test may replace modules. */
const RECORDER = (log: string): string =>
  [
    `import { appendFileSync as appendEntered } from "node:fs";`,
    "const entered = new Set();",
    "const enter = (name) => {",
    `  if (!entered.has(name)) appendEntered(${JSON.stringify(log)}, name + "\\n");`,
    "  entered.add(name);",
    "};",
    "const entering = (name, handler) => (error) => { enter(name); return handler(error); };",
  ].join(" ");

/** Returns the source with a record in each handler, and the names of the handlers. */
export function recorded(file: string, source: string, log: string): { source: string; names: string[] } {
  const names: string[] = [];
  let changed = source;
  // The last handler is changed first, so that the positions of the earlier ones stay correct.
  for (const { index, 0: found } of [
    ...source.matchAll(/\bcatch (?:\(\w+(?:: unknown)?\) )?\{|\.catch\(/g),
  ].reverse()) {
    const name = `${file}:${source.slice(0, index).split("\n").length}`;
    const start = index + found.length;
    names.push(name);
    if (found !== ".catch(") {
      changed = `${changed.slice(0, start)} enter("${name}");${changed.slice(start)}`;
      continue;
    }
    const end = closingOf(changed, start);
    changed = `${changed.slice(0, start)}entering("${name}", ${changed.slice(start, end)})${changed.slice(end)}`;
  }
  return { source: names.length === 0 ? source : `// @ts-nocheck\n${RECORDER(log)}\n${changed}`, names };
}

/** Returns the position of the bracket that closes the call whose arguments begin at `start`. */
function closingOf(source: string, start: number): number {
  for (let at = start, depth = 0; at < source.length; at++) {
    if ("([{".includes(source.charAt(at))) depth++;
    else if (")]}".includes(source.charAt(at)) && depth-- === 0) return at;
  }
  throw new Error("a call does not end");
}

export async function listCatches(tests: readonly string[]): Promise<boolean> {
  const scratch = newScratch();
  const log = join(scratch.directory, "entered.log");
  const names: string[] = [];
  try {
    for (const file of sourcesIn("shared")) {
      const path = join(scratch.directory, file);
      const changed = recorded(file, readFileSync(path, "utf8"), log);
      writeFileSync(path, changed.source);
      names.push(...changed.names);
    }
    const [failed] = await scratch.failures(tests);
    if (failed !== undefined) console.log(`a test fails with the recorders: ${failed}`);
    const entered = new Set(existsSync(log) ? readFileSync(log, "utf8").split("\n") : []);
    const never = names.filter((name) => !entered.has(name));
    for (const name of never) console.log(name, reasonOf(name) ?? "");
    const unexplained = never.filter((name) => reasonOf(name) === undefined);
    console.log(
      `${names.length} handlers of errors, ${never.length} never entered, ${unexplained.length} without a reason`,
    );
    return unexplained.length === 0;
  } finally {
    scratch.remove();
  }
}
