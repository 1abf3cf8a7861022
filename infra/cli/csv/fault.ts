/** Defines the errors that end the CSV command, with their exit codes, and retries failed requests. */
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, messageOf } from "../../local/error.ts";
import { exitCodes as ofAllCommands } from "../options.ts";

/** The exit codes of all commands, and one more code: after `cutOff`, the same command resumes the transfer. */
export const exitCodes = { ...ofAllCommands, cutOff: 3 } as const;

/** An error that a retry of the same request would not fix. Its subclass Busy is the exception. */
export class Failed extends Error {
  override readonly name: string = "Failed";
}

/** The service has deleted the requested file. */
export class Gone extends Failed {
  override readonly name = "Gone";
}

/** The service is too busy. Wait at least `waitMs` milliseconds before the next try. */
export class Busy extends Failed {
  override readonly name = "Busy";
  readonly waitMs: number;
  constructor(message: string, waitMs: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** No response came, or the user pressed Ctrl-C. The same command resumes the transfer. */
export class CutOff extends Error {
  override readonly name = "CutOff";
}

/** The second part of the message for each common error of the local file system, by Node's error code. The first part is the path. */
const fileFaults: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "may not be read or written by this user",
  EPERM: "may not be read or written by this user",
  EISDIR: "is a folder",
  ENOTDIR: "is below a file that is not a folder",
  ENOSPC: "does not fit on the disk",
  EFBIG: "is larger than a file may be",
  EROFS: "is on a disk that cannot be written",
};

/** Returns an error whose message describes an error of the local file system in a sentence. */
export function fileFault(error: unknown, path: string): Failed {
  const sentence = fileFaults[codeOf(error) ?? ""];
  return new Failed(sentence === undefined ? `${path}: ${messageOf(error)}` : `${path} ${sentence}`);
}

/** Returns the reason of an error. If a connection failed, the reason is in the error's field `cause`. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const why = cause instanceof AggregateError ? cause.errors[0] : cause;
  return why instanceof Error && why.message !== "" ? why.message : messageOf(error);
}

/** Default number of tries. The waits between eight tries take about 45 seconds together. */
export const TRIES = 8;
/**
 * Number of tries for work that can continue after a restart of the service. The waits between these tries take about ten minutes together.
 */
export const PATIENT_TRIES = 48;

export const backoff = (attempt: number, signal: AbortSignal, leastMs = 0): Promise<void> =>
  sleep(Math.max(leastMs, Math.min(15_000, 500 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2)), undefined, {
    signal,
  });

/**
 * Retries `work` with growing waits, after Busy and after every error that is not a Failed. Throws any other Failed at once. After the last
 * try, throws Busy if the service was busy, and otherwise CutOff.
 */
export async function retried<T>(
  signal: AbortSignal,
  work: (attempt: number) => Promise<T>,
  { tries = TRIES, onRetry = (_: string): void => undefined } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      signal.throwIfAborted();
      const isBusy = error instanceof Busy;
      if ((error instanceof Failed && !isBusy) || (isBusy && attempt >= tries)) throw error;
      const why = reasonOf(error);
      if (attempt >= tries) throw new CutOff(why);
      onRetry(why);
      await backoff(attempt, signal, isBusy ? error.waitMs : 0);
    }
  }
}
