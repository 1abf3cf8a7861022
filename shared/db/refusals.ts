/** Classifies DynamoDB errors: failed conditions, and conflicts with concurrent writers. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { Item } from "#shared/db/expression.ts";
import { readable } from "#shared/db/shapes.ts";
import { TableBusy } from "#shared/errors.ts";

const CONFLICT_TRIES = 8;

/**
 * Calls `send` again as long as it conflicts with concurrent writes of the same items, at most CONFLICT_TRIES times. `send` must be
 * idempotent.
 */
export async function throughConflicts<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === CONFLICT_TRIES)
        throw new TableBusy("other writers kept changing the same items", { cause: error });
      await backoff(attempt);
    }
  }
}

/**
 * Returns true if a retry can help: the error is a conflict with other writers, or a temporary fault such as throttling has cancelled the
 * transaction. A retry cannot help if a failed condition or invalid input has cancelled it.
 */
function isConflict(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return !reasonsOf(error).some(({ Code }) => Code === "ConditionalCheckFailed" || Code === "ValidationError");
  }
  return error instanceof TransactionConflictException || error instanceof TransactionInProgressException;
}

const reasonsOf = (error: unknown) =>
  error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];

/** Returns the failed conditions of a transaction: the index of each write in the transaction, and the stored item. */
export function failedConditions(error: unknown): { index: number; item: Item | undefined }[] {
  return reasonsOf(error).flatMap(({ Code, Item }, index) =>
    Code === "ConditionalCheckFailed" ? [{ index, item: itemOf(Item) }] : [],
  );
}

/** Returns the stored item if the condition of a single write failed. Returns undefined for any other error. */
export const conditionalFailure = (error: unknown): { item: Item | undefined } | undefined =>
  error instanceof ConditionalCheckFailedException ? { item: itemOf(error.Item) } : undefined;

/** Converts the item in an error to JavaScript values. The document client does this only for items in responses. */
const itemOf = (item: Record<string, AttributeValue> | undefined): Item | undefined =>
  item === undefined ? undefined : readable(unmarshall(item));

/** Waits for a random time that grows with each attempt, at most 800 ms (exponential backoff with full jitter). */
function backoff(attempt: number): Promise<void> {
  return sleep(Math.random() * Math.min(800, 25 * 2 ** attempt));
}
