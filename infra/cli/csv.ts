/**
 * Implements `npm run csv -- import FILE | export FILE` with import and export jobs of a running service. It resumes interrupted transfers.
 */
import { setTimeout as wait } from "node:timers/promises";
import { messageOf } from "../command/error.ts";
import { answerHelp, nameTarget, runCommand } from "../command/options.ts";
import { onSignal } from "../command/signals.ts";
import { exportFile, importFile } from "./csv/jobs.ts";
import { readOptions, usage } from "./csv/options.ts";
import { openProgress } from "./csv/progress.ts";
import { hasCode, openService } from "./csv/service.ts";

/** The exit code after which the same command resumes the transfer. */
const RESUMABLE = 3;
/** Maximum time in milliseconds that the command waits for the second signal after Ctrl-C, which npm forwards to this process. */
const FORWARDED_MS = 1_000;

// After Ctrl-C, the command stops its work and prints how to resume. Another Ctrl-C two seconds later ends it at once.
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
    // After Ctrl-C, npm forwards a second signal to this process. If it arrived while Node.js is ending, the process would end without the
    // exit code. So wait for this signal first.
    if (signal.aborted && process.env.npm_lifecycle_event !== undefined) {
      await Promise.race([second, wait(FORWARDED_MS)]);
    }
    return RESUMABLE;
  }
});
