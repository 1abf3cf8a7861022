/** Every error that this code throws: one closed list for callers, and the ways in which the table and the bucket refuse a call. */
import * as z from "zod/mini";

/** The closed list. Nothing else ever leaves the service as an error. */
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

/** One fault: where (a JSON pointer into the body or path, or a query parameter), what and why. */
export const Fault = z.object({
  pointer: z.optional(z.string()),
  parameter: z.optional(z.string()),
  code: z.string(),
  message: z.string(),
});
export type Fault = z.infer<typeof Fault>;

/** What a handler or domain function throws when the caller is at fault or must wait. */
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

/** Each of these body fields must hold the id of such a record. The answer does not say whether the record is missing, inactive or hidden. */
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
 * A condition did not hold. `failed` has an entry for each write of the transaction whose condition failed, with the item under its key.
 */
export class ConditionFailed extends Error {
  override readonly name = "ConditionFailed";
  readonly failed: ReadonlyArray<{ readonly index: number; readonly item: Record<string, unknown> | undefined }>;
  constructor(failed: ReadonlyArray<{ index: number; item: Record<string, unknown> | undefined }>) {
    super(`condition failed for write ${failed.map(({ index }) => index).join(", ")}`);
    this.failed = failed;
  }
}

/** The failed condition of the write with this index, if it is among those that failed. */
export const failedAt = (error: unknown, at: number): ConditionFailed["failed"][number] | undefined =>
  error instanceof ConditionFailed ? error.failed.find(({ index }) => index === at) : undefined;

/** DynamoDB could not finish a call within our attempts, because of conflicts or throttling. */
export class TableBusy extends Error {
  override readonly name = "TableBusy";
}

/** The bucket did not take or give a file within the attempts of a call. The fault is the service's, never the file's. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** The bucket has no such file, or the file has been replaced. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

/** The same call may succeed later: throttling, 5xx, time-outs, broken connections, our own deadline. */
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
