/** The errors of the service: the complete list of errors for API callers, and the errors of the table and the bucket. */
import * as z from "zod/mini";

/** The complete list of error codes. The API answers with no other code. */
export const ProblemCode = z.enum([
  "validation_failed",
  "malformed_json",
  "unauthenticated",
  "permission_denied",
  "not_found",
  "method_not_allowed",
  "conflict",
  "payload_too_large",
  "unsupported_media_type",
  "idempotency_mismatch",
  "rate_limited",
  "internal",
  "unavailable",
]);
export type ProblemCode = z.infer<typeof ProblemCode>;

/** One fault of a request, with its position (a JSON pointer into the body, or a parameter), its code and the reason. */
export const Fault = z.object({
  pointer: z.optional(z.string()),
  parameter: z.optional(z.string()),
  code: z.string(),
  message: z.string(),
});
export type Fault = z.infer<typeof Fault>;

/** Thrown if the caller made a mistake, or if the caller must wait. */
export class ApiError extends Error {
  readonly code: ProblemCode;
  readonly faults: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    options: { faults?: readonly Fault[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "ApiError";
    this.code = code;
    this.faults = options.faults ?? [];
    this.headers = options.headers ?? {};
  }
}

export const notFound = (what: string): ApiError => new ApiError("not_found", `There is no such ${what}.`);

/**
 * The error for body fields that do not hold the id of a suitable record. The message does not reveal whether the record is missing,
 * inactive or hidden.
 */
export function badReference(
  record: "an active status" | "an active user" | "an address" | "a tag",
  ...fields: readonly string[]
): ApiError {
  const message = `does not name ${record} of this company`;
  return new ApiError("validation_failed", `${fields.join(", ")}: ${message}.`, {
    faults: fields.map((field) => ({ pointer: `/${field}`, code: "invalid_reference", message })),
  });
}

/**
 * Thrown if a condition failed. `failed` has one entry for each write of the transaction whose condition failed, with the item that the key
 * holds.
 */
export class ConditionFailed extends Error {
  override readonly name = "ConditionFailed";
  readonly failed: ReadonlyArray<{ readonly index: number; readonly item: Record<string, unknown> | undefined }>;
  constructor(failed: ReadonlyArray<{ index: number; item: Record<string, unknown> | undefined }>) {
    super(`condition failed for write ${failed.map(({ index }) => index).join(", ")}`);
    this.failed = failed;
  }
}

/** The failed condition of the write with this index; undefined if that write did not fail. */
export const failedAt = (error: unknown, at: number): ConditionFailed["failed"][number] | undefined =>
  error instanceof ConditionFailed ? error.failed.find(({ index }) => index === at) : undefined;

/** Thrown if DynamoDB did not complete a call within the allowed attempts, because of conflicts or throttling. */
export class TableBusy extends Error {
  override readonly name = "TableBusy";
}

/** Thrown if S3 did not read or write a file within the allowed attempts. The fault is in the service, never in the file. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** Thrown if the file does not exist, or if another file has replaced it. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

/** Whether a later retry may succeed, as after throttling, a 5xx status, a timeout or a broken connection. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TableBusy || error instanceof BucketUnavailable) return true;
  if (
    /Throttl|Timeout|RequestLimitExceeded|ProvisionedThroughput|TransactionInProgress|InternalServer|ServiceUnavailable/.test(
      error.name,
    )
  ) {
    return true;
  }
  if ("$retryable" in error && error.$retryable !== undefined) return true;
  if ("$fault" in error && error.$fault === "server") return true;
  return (
    "code" in error && typeof error.code === "string" && /^(ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|ENOTFOUND)/.test(error.code)
  );
}
