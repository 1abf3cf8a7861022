/** Applies one operation with the same functions as the endpoints for single records. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import * as limits from "#shared/limits.ts";
import { createAppointment, updateAppointment } from "#shared/prospects/appointments.ts";
import { createNote } from "#shared/prospects/notes.ts";
import { createProspect, deleteProspect, setTags, updateProspect } from "#shared/prospects/write.ts";
import { type Operation, type OperationType, operations, type SentOperation } from "#shared/sync/operations/schema.ts";

const isType = (type: unknown): type is OperationType => typeof type === "string" && Object.hasOwn(operations, type);

/** Throws `validation_failed` if the type is unknown or a field is not valid. */
export function readOperation(sent: SentOperation): Operation {
  if (!isType(sent.type)) {
    const message = `must be one of ${Object.keys(operations).join(", ")}`;
    throw new ApiError("validation_failed", `The type of the operation ${message}.`, {
      faults: [{ pointer: "/type", code: "invalid_value", message }],
    });
  }
  return validate("body", operations[sent.type], sent);
}

/** True if the service stores the operation's `occurredAt`. */
const isFact = (operation: Operation): boolean =>
  operation.type === "prospect.create"
    ? operation.fields.currentStatusId != null
    : operation.type !== "prospect.update" || operation.fields.currentStatusId !== undefined;

/**
 * Throws `validation_failed` if `occurredAt` is in the future, or too old for a fact (`isFact`). Other operations are accepted at any age,
 * because a phone may be offline for months. `readOperation` does not check this: an old operation that was applied before must get the
 * result `duplicate`.
 */
function requirePast(operation: Operation, nowMs: number): void {
  const { occurredAt } = { occurredAt: undefined, ...operation };
  if (occurredAt === undefined) return;
  const ageMs = nowMs - Date.parse(occurredAt);
  if (ageMs >= 0 && (ageMs <= limits.factAgeMs || !isFact(operation))) return;
  const message =
    ageMs < 0 ? "must not be in the future" : `must not be older than ${limits.factAgeMs / 86_400_000} days`;
  throw new ApiError("validation_failed", `occurredAt ${message}.`, {
    faults: [{ pointer: "/occurredAt", code: "out_of_range", message }],
  });
}

/** All writes go through `context.commit`, which also writes the receipt. `id` is undefined for a prospect that the operation creates. */
export async function apply(
  context: ApiContext,
  caller: Caller,
  operation: Operation,
  id: number | undefined,
): Promise<void> {
  requirePast(operation, context.clock.now());
  if (operation.type === "prospect.create") {
    const { fields, clientRecordId, ...arrival } = operation;
    await createProspect(context, caller, { ...fields, clientRecordId }, arrival);
    return;
  }
  if (id === undefined) throw new ApiError("not_found", "There is no such prospect.");
  switch (operation.type) {
    case "prospect.update":
      await updateProspect(context, caller, id, operation.fields, operation);
      return;
    case "prospect.delete":
      return deleteProspect(context, caller, id, operation);
    case "prospect.tags":
      await setTags(context, caller, id, operation.fields, operation);
      return;
    case "note.create":
      await createNote(context, caller, id, operation.fields, operation);
      return;
    case "appointment.create":
      await createAppointment(context, caller, id, operation.fields, operation);
      return;
    case "appointment.update":
      await updateAppointment(context, caller, id, operation.fields, operation);
  }
}
