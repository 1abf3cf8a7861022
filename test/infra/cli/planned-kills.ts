/** Kills an admin command at one of its requests to AWS. This request and all later ones then fail without an effect. */
import { Killed } from "../../harness/killable.ts";

const NEVER = Number.POSITIVE_INFINITY;

export function plannedKills() {
  /**
   * How many requests (`calls`), or requests other than table reads (`writes`), the command still sends until it is killed. It is killed at
   * the last one.
   */
  let [calls, writes] = [NEVER, NEVER];

  async function endOf(work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work();
    } catch (error) {
      return error;
    } finally {
      [calls, writes] = [NEVER, NEVER];
    }
  }

  return {
    /** A middleware that counts the requests. The test adds it to each AWS client of the command. */
    middleware:
      <Args, Output>(next: (args: Args) => Promise<Output>, { commandName = "" }: { readonly commandName?: string }) =>
      async (args: Args): Promise<Output> => {
        calls--;
        if (!/^(?:BatchGet|Get|Query|Scan)/.test(commandName)) writes--;
        if (calls <= 0 || writes <= 0) throw new Killed();
        return next(args);
      },
    /** Runs the work, and kills it at request number `call`. Returns the result of the work, or the error `Killed`. */
    at(call: number, work: () => Promise<unknown>): Promise<unknown> {
      calls = call;
      return endOf(work);
    },
    /** Like `at`, but counts only the writes. */
    atWrite(write: number, work: () => Promise<unknown>): Promise<unknown> {
      writes = write;
      return endOf(work);
    },
  };
}
