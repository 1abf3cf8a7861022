/** The hook with which pages change data. It sends a change to the service, and then loads the outdated data again. */
import { useMutation, useQueryClient } from "@tanstack/react-query";

interface Change<Input, Result> {
  readonly run: (input: Input) => Promise<Result>;
  /** After the change, a query is loaded again if its key begins with one of these texts. */
  readonly stale: readonly string[];
  /** Runs before the data is loaded again, so that a panel of a deleted record is closed by then. */
  readonly onDone?: ((result: Result, input: Input) => void) | undefined;
  readonly onError?: ((error: Error, input: Input) => void) | undefined;
}

export function useChange<Result, Input = void>({ run, stale, onDone, onError }: Change<Input, Result>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: async (result, input) => {
      onDone?.(result, input);
      // React closes the panel in a microtask. A panel that is still open would load its deleted record again.
      await Promise.resolve();
      for (const first of stale) await queries.invalidateQueries({ queryKey: [first] });
    },
    ...(onError !== undefined && { onError }),
  });
}
