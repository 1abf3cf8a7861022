/** Counts the DynamoDB usage of some work: requests, capacity units, and rounds. */
import { AsyncLocalStorage } from "node:async_hooks";
import { stopSignal } from "#shared/deadline.ts";
import { DeadlinePassed } from "#shared/errors.ts";

export interface Usage {
  requests: number;
  readUnits: number;
  writeUnits: number;
  /** Number of requests in the longest chain in which each waits for the one before. It approximates the latency. */
  rounds: number;
}

export interface ConsumedCapacity {
  readonly CapacityUnits?: number | undefined;
}

const current = new AsyncLocalStorage<Usage>();

export async function metered<T>(work: () => Promise<T>): Promise<{ result: T; usage: Usage }> {
  const usage: Usage = { requests: 0, readUnits: 0, writeUnits: 0, rounds: 0 };
  const result = await current.run(usage, work);
  return { result, usage };
}

export const usageSoFar = (): Usage | undefined => current.getStore();

/** Sends a request to DynamoDB, and counts it and its units of `kind`. Throws DeadlinePassed if the current work is stopped meanwhile. */
export async function count<T extends { ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[] | undefined }>(
  kind: "read" | "write",
  send: (options: { readonly abortSignal?: AbortSignal }) => Promise<T>,
): Promise<T> {
  const abortSignal = stopSignal();
  const sent = async (): Promise<T> => {
    if (abortSignal === undefined) return send({});
    try {
      return await send({ abortSignal });
    } catch (error) {
      throw abortSignal.aborted ? new DeadlinePassed("a call of the table was stopped", { cause: error }) : error;
    }
  };
  const usage = current.getStore();
  if (usage === undefined) return sent();
  const round = usage.rounds + 1;
  usage.requests++;
  try {
    const answer = await sent();
    const consumed = answer.ConsumedCapacity ?? [];
    for (const { CapacityUnits = 0 } of Array.isArray(consumed) ? consumed : [consumed]) {
      if (kind === "read") usage.readUnits += CapacityUnits;
      else usage.writeUnits += CapacityUnits;
    }
    return answer;
  } finally {
    usage.rounds = Math.max(usage.rounds, round);
  }
}
