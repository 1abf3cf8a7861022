/**
 * Implements `npm run csv -- import FILE | export FILE`. It imports prospects into a running service, or exports them. It resumes
 * interrupted transfers.
 */

import { messageOf } from "../local/error.ts";
import { exportFile } from "./csv/export.ts";
import { Busy, CutOff, exitCodes } from "./csv/fault.ts";
import { importFile } from "./csv/import.ts";
import { readOptions, usage } from "./csv/options.ts";
import { openProgress } from "./csv/progress.ts";
import { openService } from "./csv/service.ts";
import { answerHelp, nameTarget, runCommand } from "./options.ts";

// After the first Ctrl-C, the command ends in order and prints how to resume. A second Ctrl-C ends it at once.
const interrupt = new AbortController();
for (const event of ["SIGINT", "SIGTERM"] as const) process.once(event, () => interrupt.abort());
const { signal } = interrupt;
async function main(): Promise<number> {
  answerHelp(process.argv, usage);
  const options = readOptions(process.argv.slice(2), process.env);
  nameTarget(`service at ${options.base}`);
  const progress = openProgress();
  const service = await openService(options, signal, progress.say);
  return options.command === "import" ? importFile(service, options, progress) : exportFile(service, options, progress);
}

await runCommand(() =>
  main().catch((error: unknown) => {
    if (!(signal.aborted || error instanceof CutOff || error instanceof Busy)) throw error;
    const isEarly = signal.aborted && !(error instanceof CutOff);
    console.error(isEarly ? "interrupted before the service did anything" : messageOf(error));
    return exitCodes.cutOff;
  }),
);
