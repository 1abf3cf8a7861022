/**
 * Implements `npm run csv -- import FILE | export FILE`. It imports prospects into a running service, or exports them. It resumes
 * interrupted transfers.
 */
import { exportFile } from "./csv/export.ts";
import { Busy, CutOff, exitCodes, messageOf } from "./csv/fault.ts";
import { importFile } from "./csv/import.ts";
import { readOptions, usage } from "./csv/options.ts";
import { openProgress } from "./csv/progress.ts";
import { openService } from "./csv/service.ts";
import { answerHelp, WrongUsage } from "./options.ts";
import { nameTarget } from "./target.ts";

// After the first Ctrl-C, the command ends in order and prints how to resume. A second Ctrl-C ends it at once.
const interrupt = new AbortController();
for (const event of ["SIGINT", "SIGTERM"] as const) process.once(event, () => interrupt.abort());
const { signal } = interrupt;
try {
  answerHelp(process.argv, usage);
  const options = readOptions(process.argv.slice(2), process.env);
  nameTarget(`service at ${options.base}`);
  const progress = openProgress();
  const service = await openService(options, signal, progress.say);
  process.exitCode = await (options.command === "import"
    ? importFile(service, options, progress)
    : exportFile(service, options, progress));
} catch (error) {
  const isCutOff = signal.aborted || error instanceof CutOff || error instanceof Busy;
  console.error(
    signal.aborted && !(error instanceof CutOff) ? "interrupted before the service did anything" : messageOf(error),
  );
  const { cutOff, wrongUsage, failed } = exitCodes;
  process.exitCode = isCutOff ? cutOff : error instanceof WrongUsage ? wrongUsage : failed;
}
