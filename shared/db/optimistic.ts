/** Read, decide, write on condition that nobody wrote meanwhile; else again. No lost update, no lock. */
import { setTimeout as sleep } from "node:timers/promises";
import { ConditionFailed, TableBusy } from "#shared/errors.ts";

/** Enough for some fifty writers of one record; the request's own deadline ends it before. */
const TRIES = 60;

/** `work` must read afresh at each call. A ConditionFailed that `isConflict` does not claim is passed on at once. */
export async function optimistic<T>(
  work: () => Promise<T>,
  isConflict: (error: ConditionFailed) => boolean = () => true,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ConditionFailed) || !isConflict(error)) throw error;
      if (attempt === TRIES) throw new TableBusy("the record kept changing", { cause: error });
      await sleep(Math.random() * Math.min(200, 5 * 2 ** attempt));
    }
  }
}
