/** How the table refuses a write: a condition that failed, or others who were writing meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod/mini";
import { AwsError } from "#shared/aws/json-call.ts";
import { itemOf } from "#shared/db/attributes.ts";
import { StoredAttributes } from "#shared/db/dynamo.ts";
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

const Reasons = z.object({
  CancellationReasons: z._default(
    z.array(z.object({ Code: z.nullish(z.string()), Item: z.nullish(StoredAttributes) })),
    [],
  ),
});

/** Of a transaction that was cancelled; undefined for any other error. */
const reasonsOf = (error: unknown) =>
  error instanceof AwsError && error.name === "TransactionCanceledException"
    ? Reasons.parse(error.answer).CancellationReasons
    : undefined;

/** Cancelled for no fault of its own, neither by a condition nor by bad input. */
function isConflict(error: unknown): boolean {
  const reasons = reasonsOf(error);
  if (reasons !== undefined) {
    return !reasons.some(({ Code }) => Code === "ConditionalCheckFailed" || Code === "ValidationError");
  }
  return error instanceof AwsError && /^Transaction(?:Conflict|InProgress)Exception$/.test(error.name);
}

/** Which conditions of a transaction failed, with the items that stand there. */
export function failedConditions(error: unknown): { index: number; item: Item | undefined }[] {
  return (reasonsOf(error) ?? []).flatMap(({ Code, Item }, index) =>
    Code === "ConditionalCheckFailed" ? [{ index, item: Item ? itemOf(Item) : undefined }] : [],
  );
}

const Refused = z.object({ Item: z.nullish(StoredAttributes) });

/** The item that stands where a single write's condition failed; `undefined` for any other error. */
export function conditionalFailure(error: unknown): { item: Item | undefined } | undefined {
  if (!(error instanceof AwsError && error.name === "ConditionalCheckFailedException")) return undefined;
  const { Item } = Refused.parse(error.answer);
  return { item: Item ? itemOf(Item) : undefined };
}

/** Full jitter: 0 to 25 ms doubled per attempt, at most 800 ms. */
function backoff(attempt: number): Promise<void> {
  return sleep(Math.random() * Math.min(800, 25 * 2 ** attempt));
}
