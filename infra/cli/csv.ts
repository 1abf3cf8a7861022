/** Implements `npm run csv -- import FILE | export FILE` with jobs of a running service, and resumes interrupted transfers. */
import { setTimeout as wait } from "node:timers/promises";
import yoctoSpinner from "yocto-spinner";
import { NoLocalService } from "../local/local-token.ts";
import { messageOf } from "./command/error.ts";
import { answerHelp, nameTarget, runCommand } from "./command/options.ts";
import { onSignal } from "./command/signals.ts";
import { exportFile } from "./csv/export.ts";
import { importFile } from "./csv/import.ts";
import { readOptions, usage } from "./csv/options.ts";
import { Busy, openService } from "./csv/service.ts";

/** Exit code of a command that resumes the transfer when it is repeated. */
const RESUMABLE = 3;
/** Milliseconds to wait for the second signal, which npm sends after Ctrl-C. While Node.js ends, a signal would replace the exit code. */
const FORWARDED_MS = 1_000;

const interrupt = new AbortController();
const { signal } = interrupt;
onSignal(
  () => interrupt.abort(),
  () => process.exit(RESUMABLE),
);

await runCommand(async () => {
  answerHelp(process.argv, usage);
  const options = readOptions(process.argv.slice(2), process.env);
  nameTarget(`service at ${options.base}`);
  const spinner = yoctoSpinner({ stream: process.stderr, handleSignals: false });
  try {
    const service = await openService(options, { signal, spinner });
    return await (options.command === "import" ? importFile(service, options) : exportFile(service, options));
  } catch (error) {
    spinner.stop();
    const isAway = error instanceof NoLocalService || error instanceof Busy;
    if (!signal.aborted && !isAway) throw error;
    console.error(`${signal.aborted ? "interrupted" : messageOf(error)}: run the same command to resume`);
    if (signal.aborted && process.env.npm_lifecycle_event !== undefined) await wait(FORWARDED_MS);
    return RESUMABLE;
  }
});
