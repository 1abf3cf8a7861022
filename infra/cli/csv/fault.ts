/** Defines the errors that end the CSV command, with their exit codes, and repeats failed calls. */
import { setTimeout as sleep } from "node:timers/promises";

export const exitCodes = { done: 0, skipped: 1, failed: 2, cutOff: 3 } as const;

/** An error after which the same command would fail again. */
export class Failed extends Error {
  override readonly name: string = "Failed";
}

/** The service no longer has the file. */
export class Gone extends Failed {
  override readonly name = "Gone";
}

/** The service asks for a retry after at least `waitMs` milliseconds. */
export class Busy extends Failed {
  override readonly name = "Busy";
  readonly waitMs: number;
  constructor(message: string, waitMs: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** No answer came, or the user pressed Ctrl-C. The same command resumes afterwards. */
export class CutOff extends Error {
  override readonly name = "CutOff";
}

/** Sentences for the usual errors of the local file system, by their code. */
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

/** Returns Failed with a sentence for an error of the local file system. */
export function fileFault(error: unknown, path: string): Failed {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const sentence = fileFaults[code];
  return new Failed(sentence === undefined ? `${path}: ${messageOf(error)}` : `${path} ${sentence}`);
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the reason of an error. For a failed connection it is in `cause`. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const why = cause instanceof AggregateError ? cause.errors[0] : cause;
  return why instanceof Error && why.message !== "" ? why.message : messageOf(error);
}

/** The waits between this many tries take 45 seconds together. */
export const TRIES = 8;
/** The waits between this many tries take ten minutes together, in which a service starts again or a connection comes back. */
export const PATIENT_TRIES = 48;

export const backoff = (attempt: number, signal: AbortSignal, leastMs = 0): Promise<void> =>
  sleep(Math.max(leastMs, Math.min(15_000, 500 * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2)), undefined, {
    signal,
  });

/**
 * Repeats `work` after every error but Failed, with growing waits. After the last try it throws CutOff, or Busy if the service was busy.
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
