/** Runs work that must also be done if this process exits early, such as the removal of temporary directories. */

/** Returns a function that does the work. If nobody has called this function when the process exits, the exit does the work. */
export function doneAtExit(work: () => void): () => void {
  const once = (): void => {
    process.off("exit", once);
    work();
  };
  process.on("exit", once);
  return once;
}
