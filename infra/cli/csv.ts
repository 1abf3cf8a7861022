/** `npm run csv -- import FILE | export FILE`: moves prospects in and out of a running service, and goes on where it was cut off. */
import { exportFile } from "./csv/export.ts";
import { CutOff, exitCodes, messageOf } from "./csv/fault.ts";
import { importFile } from "./csv/import.ts";
import { readOptions } from "./csv/options.ts";
import { openProgress } from "./csv/progress.ts";
import { openService } from "./csv/service.ts";

/** Gives the exit code. */
async function main(signal: AbortSignal): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env);
  const service = await openService(options, signal);
  const progress = openProgress();
  return options.command === "import" ? importFile(service, options, progress) : exportFile(service, options, progress);
}

/** The first Ctrl-C lets the command say how to go on, the second one ends it. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const event of ["SIGINT", "SIGTERM"] as const) process.once(event, () => controller.abort());
  return controller.signal;
}

const signal = interruption();
try {
  process.exitCode = await main(signal);
} catch (error) {
  const isCutOff = signal.aborted || error instanceof CutOff;
  console.error(isCutOff && !(error instanceof CutOff) ? "cut off before anything was begun" : messageOf(error));
  process.exitCode = isCutOff ? exitCodes.cutOff : exitCodes.failed;
}
