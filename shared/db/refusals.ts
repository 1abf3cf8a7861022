/** Classifies the errors of DynamoDB: throttling, failed conditions, and conflicts with other writers. */
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
import { TableBusy } from "#shared/errors.ts";

const CONFLICT_TRIES = 8;

/** Repeats a call while it conflicts with other writers of the same items. The call must be idempotent. */
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

/** Whether a retry can succeed. It cannot if a failed condition or invalid input cancelled the transaction. */
function isConflict(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return !reasonsOf(error).some(({ Code }) => Code === "ConditionalCheckFailed" || Code === "ValidationError");
  }
  return error instanceof TransactionConflictException || error instanceof TransactionInProgressException;
}

const reasonsOf = (error: unknown) =>
  error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];

/** The failed conditions of a transaction, each with the item that the key holds. */
export function failedConditions(error: unknown): { index: number; item: Item | undefined }[] {
  return reasonsOf(error).flatMap(({ Code, Item }, index) =>
    Code === "ConditionalCheckFailed" ? [{ index, item: itemOf(Item) }] : [],
  );
}

/** The item that the key of a single write holds if the write's condition failed; `undefined` for any other error. */
export const conditionalFailure = (error: unknown): { item: Item | undefined } | undefined =>
  error instanceof ConditionalCheckFailedException ? { item: itemOf(error.Item) } : undefined;

/** Converts the item in an error, because the document client converts only answers. */
const itemOf = (item: Record<string, AttributeValue> | undefined): Item | undefined =>
  item === undefined ? undefined : unmarshall(item);

const throttling = /^(ProvisionedThroughputExceeded|RequestLimitExceeded|Throttling|ThrottlingException|.*Throttled.*)/;

/** Whether DynamoDB temporarily rejected the whole call. */
export const isThrottled = (error: unknown): boolean => error instanceof Error && throttling.test(error.name);

/**
 * Waits with full jitter: a random time below 25 ms for the first attempt. The upper bound doubles with each attempt, to at most 800 ms.
 */
function backoff(attempt: number): Promise<void> {
  return sleep(Math.random() * Math.min(800, 25 * 2 ** attempt));
}
