/** Makes the result of an operation from its receipt or from the error with which it ended. */
import type { Written } from "#shared/context.ts";
import { ApiError, ConditionFailed, isTransient, Outdated } from "#shared/errors.ts";
import { problemBody, problems } from "#shared/http/problem.ts";
import { isObject } from "#shared/json.ts";
import { errorFields, log } from "#shared/log.ts";
import type { Problem } from "#shared/problem.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { Appointment, Prospect } from "#shared/prospects/schema.ts";
import { HasReceipt } from "#shared/sync/operations/receipts.ts";
import type { OperationResult } from "#shared/sync/operations/schema.ts";

/** An operation that was not tried, because an earlier operation on the same record of the batch has failed. */
export class Blocked extends Error {
  override readonly name = "Blocked";
}

export type Result = Omit<OperationResult, "opId">;

export const applied = ({ id, version }: Written): Result => ({
  outcome: "applied",
  id,
  version: shownVersion(version),
});

export const retry = (id: number | null): Result => ({ outcome: "retry", id, version: null });

/** Where an operation is: its request and its position in the batch. */
export interface Place {
  readonly requestId: string;
  /** The position in the batch. */
  readonly at: number;
  /** The record that the operation names, or null if it is not known. */
  readonly id: number | null;
}

/** Returns the result of an operation that has ended with this error. */
export function failed(error: unknown, { requestId, at, id }: Place): Result {
  if (error instanceof HasReceipt) return { ...applied(error.written), outcome: "duplicate" };
  if (error instanceof Blocked) return { outcome: "blocked", id, version: null };
  if (error instanceof Outdated) return conflict(error);
  if (error instanceof ApiError && problems[error.code].status < 500) {
    return { outcome: "rejected", id, version: null, problem: problemAt(error, at, requestId) };
  }
  const isExpected = isTransient(error) || error instanceof ConditionFailed || error instanceof ApiError;
  if (isExpected) return retry(id);
  log.error("operation failed", errorFields(error));
  return { ...retry(id), problem: problemBody("internal", problems.internal.title, requestId, []) };
}

const conflict = ({ id, version, record }: Outdated): Result => ({
  outcome: "conflict",
  id,
  version: shownVersion(version),
  // `record` is a stored row. Parsing removes the fields that the API does not show.
  record: isObject(record) && "startAt" in record ? Appointment.parse(record) : Prospect.parse(record),
});

/**
 * Matches the pointers to fields of the operation itself. The functions that the endpoints for single records also use return pointers into
 * the request body of their endpoint. In an operation, this body is the field `fields`, so such a pointer gets the prefix `/fields`.
 */
const ofOperation = /^\/(?:type|id|clientRecordId|fields|baseVersion|occurredAt)(?:\/|$)/;

function problemAt({ code, message, faults }: ApiError, at: number, requestId: string): Problem {
  const moved = faults.map(({ pointer = "", ...fault }) => {
    const inside = ofOperation.test(pointer) ? pointer : `/fields${pointer}`;
    return { ...fault, pointer: `/operations/${at}${inside}` };
  });
  return problemBody(code, message, requestId, moved);
}
