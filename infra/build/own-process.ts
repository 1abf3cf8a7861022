/** Runs a build in a process of its own, because bundlers and the CDK can need gigabytes of memory until their process ends. */
import { fork } from "node:child_process";
import * as z from "zod/mini";
import { doneAtExit } from "../cli/command/at-exit.ts";
import { codeOf, messageOf, pathOf } from "../cli/command/error.ts";

const FromBuild = z.union([
  z.object({ step: z.string() }),
  z.object({ result: z.unknown() }),
  z.object({ failure: z.string(), code: z.optional(z.string()), path: z.optional(z.string()) }),
]);

/**
 * Runs a build and returns its result. If this process exits or is killed, the process of the build ends, too.
 * @param file a module that calls `answerParent`
 * @param onStep is called when the build has ended a step
 */
export async function inOwnProcess(
  file: string,
  input: object,
  onStep: (step: string) => void = () => undefined,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  // The build may print warnings. They go to standard error, because programs read the standard output of this process.
  const child = fork(file, { execArgv: [], stdio: ["ignore", 2, 2, "ipc"] });
  const end = doneAtExit(() => child.kill());
  child.on("message", (message) => {
    const from = z.parse(FromBuild, message);
    if ("step" in from) onStep(from.step);
    else if ("result" in from) resolve(from.result);
    else reject(Object.assign(new Error(from.failure), { code: from.code, path: from.path }));
  });
  child.once("error", reject);
  child.once("exit", (code, signal) => reject(new Error(`a process of the build ended with ${signal ?? code}`)));
  child.send(input);
  return promise.finally(end);
}

/** Sends the result of `work` to the parent, which then ends this process. If this process exited by itself, the result could be lost. */
export function answerParent(work: (input: unknown, onStep: (step: string) => void) => Promise<unknown>): void {
  const send = (message: z.infer<typeof FromBuild>): void => void process.send?.(message);
  process.once("disconnect", () => process.exit(1));
  process.once("message", (input) => {
    work(input, (step) => send({ step })).then(
      (result) => send({ result }),
      (error: unknown) => send({ failure: messageOf(error), code: codeOf(error), path: pathOf(error) }),
    );
  });
}
