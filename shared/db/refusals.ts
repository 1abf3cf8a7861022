/** How the table refuses a write: a condition that failed, or others who were writing meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  ConditionalCheckFailedException,
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { TableBusy } from "#shared/db/errors.ts";
import type { Item } from "#shared/db/table.ts";

const CONFLICT_TRIES = 8;

/** Sends again while others are writing the same items. What it sends must be idempotent. */
export async function throughConflicts<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === CONFLICT_TRIES) throw new TableBusy("conflicts with other writers went on", { cause: error });
      await backoff(attempt);
    }
  }
}

/** Of a transaction: cancelled for no fault of its own, neither by a condition nor by bad input. */
function isConflict(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    const reasons = error.CancellationReasons ?? [];
    return !reasons.some(({ Code }) => Code === "ConditionalCheckFailed" || Code === "ValidationError");
  }
  return error instanceof TransactionConflictException || error instanceof TransactionInProgressException;
}

/** Which conditions of a transaction failed, with the items that stand there. */
export function failedConditions(error: unknown): { index: number; item: Item | undefined }[] {
  if (!(error instanceof TransactionCanceledException)) return [];
  return (error.CancellationReasons ?? []).flatMap(({ Code, Item }, index) =>
    Code === "ConditionalCheckFailed" ? [{ index, item: Item === undefined ? undefined : unmarshall(Item) }] : [],
  );
}

/** The item that stands where a single write's condition failed; `undefined` for any other error. */
export function conditionalFailure(error: unknown): { item: Item | undefined } | undefined {
  if (!(error instanceof ConditionalCheckFailedException)) return undefined;
  return { item: error.Item === undefined ? undefined : unmarshall(error.Item) };
}

/** Full jitter: 0 to 25 ms doubled per attempt, at most 800 ms. */
function backoff(attempt: number): Promise<void> {
  return sleep(Math.random() * Math.min(800, 25 * 2 ** attempt));
}
