/** Runs work on which several test processes depend. The work runs once in a test run, and not once in each process. */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../../infra/cli/command/error.ts";

const WORK_MS = 240_000;

/** The first process runs the work, the others wait. If the work fails, the next process runs it. Directories mark its begin and end. */
export async function onceInRun(name: string, work: () => Promise<unknown>, directory = tmpdir()): Promise<void> {
  const begun = join(directory, `${name}-begun`);
  const ended = join(directory, `${name}-ended`);
  for (const until = Date.now() + WORK_MS; !existsSync(ended); await sleep(100)) {
    if (Date.now() > until) throw new Error(`another process does not finish this: ${name}`);
    // Creating a directory fails if it exists, so exactly one process creates it.
    const isFirst = await mkdir(begun).then(
      () => true,
      (error: unknown) => (codeOf(error) === "EEXIST" ? false : Promise.reject(error)),
    );
    if (!isFirst) continue;
    try {
      await work();
      await mkdir(ended);
    } catch (error) {
      await rm(begun, { recursive: true });
      throw error;
    }
  }
}
