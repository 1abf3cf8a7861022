/** Runs work that must also be done if this process exits early, such as the removal of temporary directories. */

/** Returns a function that does the work. If nobody has called this function before the process exits, the work is done at the exit. */
export function doneAtExit(work: () => void): () => void {
  const once = (): void => {
    process.off("exit", once);
    work();
  };
  process.on("exit", once);
  return once;
}
