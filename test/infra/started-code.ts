/**
 * Loads the bundles that its arguments name, and prints the work of each load: bytes of executed code, and number of function calls. Unlike
 * times, these counts are equal in every run of one Node.js version.
 */
import { Session } from "node:inspector/promises";

export interface Started {
  /** Executed bytes of the bundle's own code. Functions that are never called do not count. */
  readonly bytes: number;
  readonly calls: number;
}

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const addresses = process.argv.slice(2);
for (const address of addresses) await import(address);
const { result } = await session.post("Profiler.takePreciseCoverage");
const scripts = new Map(result.map(({ url, functions }) => [url, functions.flatMap(({ ranges }) => ranges)]));
const started = addresses.map((address): Started => {
  const ranges = scripts.get(address) ?? [];
  return { bytes: bytesRun(ranges), calls: ranges.reduce((sum, { count }) => sum + count, 0) };
});
process.stdout.write(JSON.stringify(started));
process.exit(0);

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/**
 * Returns the number of executed bytes. The range of an inner function must overwrite the range of its outer function, so outer functions
 * are processed first.
 */
function bytesRun(ranges: readonly Range[]): number {
  const runs = new Uint8Array(Math.max(0, ...ranges.map(({ endOffset }) => endOffset)));
  const outerFirst = ranges.toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of outerFirst) runs.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return runs.reduce((sum, run) => sum + run, 0);
}
