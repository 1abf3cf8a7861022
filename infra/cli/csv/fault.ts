/** Why the command ends: each kind has an exit code of its own. */

/** The service refuses it, or it cannot be done. */
export class Failed extends Error {
  override readonly name: string = "Failed";
}

export class WrongUsage extends Failed {
  override readonly name = "WrongUsage";
}

/** What was to be fetched is not there any more, and will not be. */
export class Gone extends Failed {
  override readonly name = "Gone";
}

/** No answer came, or somebody pressed Ctrl-C: the same command goes on. */
export class CutOff extends Error {
  override readonly name = "CutOff";
}

export const exitCodes = { done: 0, skipped: 1, failed: 2, cutOff: 3 } as const;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What a connection that was refused or broke says is in its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const why = cause instanceof AggregateError ? cause.errors[0] : cause;
  return why instanceof Error && why.message !== "" ? why.message : error.message;
}
