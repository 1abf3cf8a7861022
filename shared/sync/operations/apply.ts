/** Makes the plan and the result of one operation, with the same functions as the endpoints for single records. */
import type { Caller } from "#shared/auth/caller.ts";
import { requireScope } from "#shared/auth/scopes.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Plan, Written } from "#shared/db/plan.ts";
import { ApiError, ConditionFailed, isTransient, Outdated, problemBody, problems } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import { isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import type { Fault, Problem } from "#shared/problem.ts";
import { createAppointment, updateAppointment } from "#shared/prospects/appointments.ts";
import { createNote } from "#shared/prospects/notes.ts";
import { shownVersion } from "#shared/prospects/record-version.ts";
import { Appointment, Prospect } from "#shared/prospects/schema.ts";
import { createProspect, deleteProspect, setTags, updateProspect } from "#shared/prospects/write.ts";
import { HasReceipt } from "#shared/sync/operations/receipts.ts";
import {
  type Operation,
  type OperationResult,
  operations,
  type SentOperation,
} from "#shared/sync/operations/schema.ts";

const isType = (type: unknown): type is Operation["type"] =>
  typeof type === "string" && Object.hasOwn(operations, type);

/** Returns the error `validation_failed` if the type is unknown or a field is not valid. */
export function readOperation(sent: SentOperation): Operation | ApiError {
  const { type } = sent;
  if (!isType(type)) {
    const message = `must be one of ${Object.keys(operations).join(", ")}`;
    return invalid(`The type of the operation ${message}.`, { pointer: "/type", code: "invalid_value", message });
  }
  try {
    return validate("body", operations[type], sent);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

const invalid = (detail: string, fault: Fault): ApiError =>
  new ApiError("validation_failed", detail, { faults: [fault] });

/** True if the service stores the operation's `occurredAt`. */
const isFact = (operation: Operation): boolean =>
  operation.type === "prospect.create"
    ? operation.fields.currentStatusId != null
    : operation.type !== "prospect.update" || operation.fields.currentStatusId !== undefined;

/**
 * Replaces an `occurredAt` that is slightly in the future with the present time, because clocks of devices differ. Throws
 * `validation_failed` if it is further in the future, or too old for a fact (`isFact`). Other operations are accepted at any age: a phone
 * may be offline for months. `readOperation` must not check the time, because an old operation that was applied before is a `duplicate`.
 */
function notAhead(operation: Operation, nowMs: number): Operation {
  if (!("occurredAt" in operation) || operation.occurredAt === undefined) return operation;
  const ageMs = nowMs - Date.parse(operation.occurredAt);
  if (ageMs < 0 && ageMs >= -limits.clockAheadMs) return { ...operation, occurredAt: iso(nowMs) };
  if (ageMs >= 0 && (ageMs <= limits.factAgeMs || !isFact(operation))) return operation;
  const message =
    ageMs < 0
      ? `must not be more than ${limits.clockAheadMs / 60_000} minutes in the future`
      : `must not be older than ${limits.factAgeMs / 86_400_000} days`;
  throw invalid(`occurredAt ${message}.`, { pointer: "/occurredAt", code: "out_of_range", message });
}

/** `id` is undefined for a prospect that the operation creates. */
export async function planOf(
  given: ApiContext,
  caller: Caller,
  sent: Operation,
  id: number | undefined,
): Promise<Plan<unknown>> {
  requireScope(caller, sent.type === "prospect.delete" ? "prospects:delete" : "prospects:write");
  const nowMs = given.clock.now();
  const operation = notAhead(sent, nowMs);
  // If `occurredAt` was replaced, the record's `createdAt` must be exactly the same time.
  const context = operation === sent ? given : { ...given, clock: { now: () => nowMs } };
  if (operation.type === "prospect.create") {
    const { fields, clientRecordId, ...arrival } = operation;
    return createProspect(context, caller, { ...fields, clientRecordId }, arrival);
  }
  if (id === undefined) throw new ApiError("not_found", "There is no such prospect.");
  switch (operation.type) {
    case "prospect.update":
      return updateProspect(context, caller, id, operation.fields, operation);
    case "prospect.delete":
      return deleteProspect(context, caller, id, operation);
    case "prospect.tags":
      return setTags(context, caller, id, operation.fields, operation);
    case "note.create":
      return createNote(context, caller, id, operation.fields, operation);
    case "appointment.create":
      return createAppointment(context, caller, id, operation.fields, operation);
    case "appointment.update":
      return updateAppointment(context, caller, id, operation.fields, operation);
  }
}

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

/** Returns the result for an error. `at` is the position of the operation in the batch. `id` is null if it is not known. */
export function failed(error: unknown, requestId: string, at: number, id: number | null): Result {
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

/**
 * Matches a fault's pointer to a field of the operation itself. All other pointers are relative to the body of an endpoint for one record,
 * and an operation has this body in `fields`.
 */
const ofOperation = /^\/(?:type|id|clientRecordId|fields|baseVersion|occurredAt)(?:\/|$)/;

function problemAt({ code, message, faults }: ApiError, at: number, requestId: string): Problem {
  const moved = faults.map(({ pointer = "", ...fault }) => {
    const inside = ofOperation.test(pointer) ? pointer : `/fields${pointer}`;
    return { ...fault, pointer: `/operations/${at}${inside}` };
  });
  return problemBody(code, message, requestId, moved);
}
