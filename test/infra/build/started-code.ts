/**
 * Loads bundles and prints how much code each executes, and which modules of Node.js they load. Unlike times, both are equal in every run.
 */
import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";

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
const started = addresses.map((address, at) => {
  const ranges = scripts.get(address) ?? [];
  const calls = ranges.reduce((sum, { count }) => sum + count, 0);
  return { handler: handlers[at] ?? "", bytes: bytesRun(ranges), calls };
});
process.stdout.write(JSON.stringify({ started, nodeModules }));
process.exit(0);

function moduleLoadList(): string[] {
  return "moduleLoadList" in process && Array.isArray(process.moduleLoadList) ? [...process.moduleLoadList] : [];
}

/**
 * Returns the number of bytes of the called functions, including branches that did not run. Each range is a function, and a function may be
 * inside another one. The count of an inner function overwrites that of its outer function.
 */
function bytesRun(ranges: readonly Profiler.CoverageRange[]): number {
  const runs = new Uint8Array(Math.max(0, ...ranges.map(({ endOffset }) => endOffset)));
  const outerFirst = ranges.toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of outerFirst) runs.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return runs.reduce((sum, run) => sum + run, 0);
}
