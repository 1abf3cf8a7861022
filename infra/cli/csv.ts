/** Implements `npm run csv -- import FILE | export FILE` with jobs of a running service, and resumes interrupted transfers. */
import { setTimeout as wait } from "node:timers/promises";
import { messageOf } from "../command/error.ts";
import { answerHelp, nameTarget, runCommand } from "../command/options.ts";
import { onSignal } from "../command/signals.ts";
import { exportFile, importFile } from "./csv/jobs.ts";
import { readOptions, usage } from "./csv/options.ts";
import { openProgress } from "./csv/progress.ts";
import { hasCode, openService } from "./csv/service.ts";

/** The same command then resumes the transfer. */
const RESUMABLE = 3;
/** Wait for the second signal after Ctrl-C, which npm forwards to this process. */
const FORWARDED_MS = 1_000;

// Stops the work and prints how to resume. Another Ctrl-C two seconds later ends the command at once.
const interrupt = new AbortController();
const second = onSignal(
  () => interrupt.abort(),
  () => process.exit(RESUMABLE),
);
const { signal } = interrupt;

await runCommand(async () => {
  answerHelp(process.argv, usage);
  const options = readOptions(process.argv.slice(2), process.env);
  nameTarget(`service at ${options.base}`);
  const progress = openProgress();
  try {
    const service = await openService(options, { signal, progress });
    return await (options.command === "import" ? importFile(service, options) : exportFile(service, options));
  } catch (error) {
    progress.end();
    if (!(signal.aborted || hasCode(error, "cutOff"))) throw error;
    console.error(signal.aborted ? progress.hint : `${messageOf(error)}\n${progress.hint}`);
    // If npm's second signal arrived while Node.js is ending, the process would end without the exit code.
    if (signal.aborted && process.env.npm_lifecycle_event !== undefined) {
      await Promise.race([second, wait(FORWARDED_MS)]);
    }
    return RESUMABLE;
  }
});
