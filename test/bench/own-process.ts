/** Runs a script in a process of its own, so that the measurements of the script do not include the memory and the work of the bench. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

interface ProcessOptions {
  /** Options of Node.js, for example limits of the heap. */
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs `script`, a file of this folder. The script gets the job as JSON, and prints its result as JSON in its last line. */
export async function inOwnProcess(
  script: string,
  job: object,
  { flags = [], env }: ProcessOptions = {},
): Promise<unknown> {
  const args = [...flags, join(import.meta.dirname, script), JSON.stringify(job)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 28, ...(env && { env }) });
  return JSON.parse(stdout.slice(stdout.trimEnd().lastIndexOf("\n") + 1));
}
