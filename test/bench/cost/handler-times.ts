/**
 * Measures the processor time of bundled functions, each in new processes. A handler that does nothing is measured too, so that its time
 * can be subtracted.
 */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import * as z from "zod/mini";
import type { HandlerTimes } from "./handler-process.ts";

export interface HandlerJob {
  /** The directory of the bundle, relative to the directory `bundles`. */
  readonly file: string;
  readonly events: readonly unknown[];
  readonly environment: Readonly<Record<string, string>>;
}

const Times = z.object({ loadCpuMs: z.number(), firstCallCpuMs: z.number(), warmCpuMs: z.number() });

const WARM_UP = 60;
const CALLS = 60;
/**
 * Number of new processes for each job. The result is the minimum of their times, because other load of the machine can only make a process
 * slower.
 */
const PROCESSES = 3;

/** Returns the times of each job minus the times of a handler that does nothing. */
export async function handlerTimes<Name extends string>(
  bundles: string,
  jobs: ReadonlyMap<Name, HandlerJob>,
): Promise<Map<Name, HandlerTimes>> {
  mkdirSync(join(bundles, "bare"), { recursive: true });
  writeFileSync(join(bundles, "bare", "index.mjs"), "export const handler = async () => ({ statusCode: 200 });\n");
  const samples = new Map<Name, HandlerTimes>();
  for (let turn = 0; turn < PROCESSES; turn++) {
    const bare = await timesOf(bundles, { file: "bare", events: [{}], environment: {} });
    for (const [name, job] of jobs) {
      const own = await timesOf(bundles, job);
      const beyond = difference(own, bare);
      samples.set(name, least(samples.get(name) ?? beyond, beyond));
    }
  }
  return samples;
}

async function timesOf(bundles: string, { file, events, environment }: HandlerJob): Promise<HandlerTimes> {
  const bundle = pathToFileURL(join(bundles, file, "index.mjs")).href;
  const job = JSON.stringify({ bundle, events, warmUp: WARM_UP, calls: CALLS });
  const script = join(import.meta.dirname, "handler-process.ts");
  const env = { PATH: process.env.PATH ?? "", ...environment };
  const { stdout } = await promisify(execFile)(process.execPath, [script, job], { env, maxBuffer: 2 ** 28 });
  return Times.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""));
}

const both = (a: HandlerTimes, b: HandlerTimes, of: (a: number, b: number) => number): HandlerTimes => ({
  loadCpuMs: of(a.loadCpuMs, b.loadCpuMs),
  firstCallCpuMs: of(a.firstCallCpuMs, b.firstCallCpuMs),
  warmCpuMs: of(a.warmCpuMs, b.warmCpuMs),
});
const difference = (a: HandlerTimes, b: HandlerTimes): HandlerTimes => both(a, b, (x, y) => Math.max(0, x - y));
const least = (a: HandlerTimes, b: HandlerTimes): HandlerTimes => both(a, b, Math.min);
