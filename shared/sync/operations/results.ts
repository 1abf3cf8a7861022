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

/** An earlier operation on the same record of the batch has failed. */
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

export interface Place {
  readonly requestId: string;
  readonly at: number;
  /** Null if it is not known. */
  readonly id: number | null;
}

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
  // Parsing removes the fields that the API does not show.
  record: isObject(record) && "startAt" in record ? Appointment.parse(record) : Prospect.parse(record),
});

/** Pointers into the operation itself. Any other pointer is into the body of the endpoint for single records, which is `fields` here. */
const ofOperation = /^\/(?:type|id|clientRecordId|fields|baseVersion|occurredAt)(?:\/|$)/;

function problemAt({ code, message, faults }: ApiError, at: number, requestId: string): Problem {
  const moved = faults.map(({ pointer = "", ...fault }) => {
    const inside = ofOperation.test(pointer) ? pointer : `/fields${pointer}`;
    return { ...fault, pointer: `/operations/${at}${inside}` };
  });
  return problemBody(code, message, requestId, moved);
}
