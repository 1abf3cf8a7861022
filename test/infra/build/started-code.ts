/**
 * Loads the bundles whose paths are its arguments. For each of them, it prints the type of its handler, the bytes of executed code and the
 * number of function calls. It also prints the modules of Node.js that the bundles have loaded. Unlike times, these facts are equal in
 * every run with the same version of Node.js.
 */
import { Session } from "node:inspector/promises";

export interface Started {
  readonly handler: string;
  /** Bytes of the bundle's own code in functions that are called. Branches that do not run count too, if their function is called. */
  readonly bytes: number;
  readonly calls: number;
}

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const addresses = process.argv.slice(2);
const before = new Set(moduleLoadList());
const handlers: string[] = [];
for (const address of addresses) {
  const { handler }: { handler?: unknown } = await import(address);
  handlers.push(typeof handler);
}
const nodeModules = moduleLoadList().filter((name) => !before.has(name));
const { result } = await session.post("Profiler.takePreciseCoverage");
const scripts = new Map(result.map(({ url, functions }) => [url, functions.flatMap(({ ranges }) => ranges)]));
const started = addresses.map((address, at): Started => {
  const ranges = scripts.get(address) ?? [];
  return {
    handler: handlers[at] ?? "",
    bytes: bytesRun(ranges),
    calls: ranges.reduce((sum, { count }) => sum + count, 0),
  };
});
process.stdout.write(JSON.stringify({ started, nodeModules }));
process.exit(0);

/** Returns the names of all modules of Node.js that this process has loaded. */
function moduleLoadList(): string[] {
  return "moduleLoadList" in process && Array.isArray(process.moduleLoadList) ? [...process.moduleLoadList] : [];
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/**
 * Returns the number of executed bytes. A range is a function, and ranges are nested. The ranges are processed from the outside to the
 * inside, because the count of an inner function must overwrite the count of its outer function.
 */
function bytesRun(ranges: readonly Range[]): number {
  const runs = new Uint8Array(Math.max(0, ...ranges.map(({ endOffset }) => endOffset)));
  const outerFirst = ranges.toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of outerFirst) runs.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return runs.reduce((sum, run) => sum + run, 0);
}
