/** The errors of the service: ApiError for error responses, their status and body, and classes for other failures. */
import type { Fault, Problem, ProblemCode, ProblemMembers } from "#shared/problem.ts";

export class ApiError extends Error {
  readonly code: ProblemCode;
  readonly faults: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;
  /** Members of the problem body that only some error codes have, such as `actualCount`. */
  readonly members: ProblemMembers;
  /** True if the response shows `detail` in spite of a 5xx status. */
  readonly showsDetail: boolean;
  /** The target of the `Location` header, for example the unfinished job that causes a `conflict`. */
  readonly location: string | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      faults?: readonly Fault[];
      headers?: Record<string, string>;
      members?: ProblemMembers;
      showsDetail?: boolean;
      location?: string;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "ApiError";
    this.code = code;
    this.faults = options.faults ?? [];
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
    this.showsDetail = options.showsDetail ?? false;
    this.location = options.location;
  }
}

export const problems: Record<ProblemCode, { readonly status: number; readonly title: string }> = {
  validation_failed: { status: 400, title: "The request is not valid" },
  malformed_json: { status: 400, title: "The body is not valid JSON" },
  unauthenticated: { status: 401, title: "A valid access token is required" },
  permission_denied: { status: 403, title: "You may not do this" },
  insufficient_scope: { status: 403, title: "The key may not do this" },
  not_found: { status: 404, title: "There is no such resource" },
  method_not_allowed: { status: 405, title: "This method is not available here" },
  conflict: { status: 409, title: "The request conflicts with the current state" },
  count_mismatch: { status: 409, title: "The number of records is not the expected one" },
  request_in_progress: { status: 409, title: "An earlier request with this idempotency key is still running" },
  payload_too_large: { status: 413, title: "The request is too large" },
  unsupported_media_type: { status: 415, title: "The endpoint does not accept this media type" },
  idempotency_mismatch: { status: 422, title: "This idempotency key was used with another request" },
  rate_limited: { status: 429, title: "Too many requests" },
  internal: { status: 500, title: "Something went wrong on our side" },
  unavailable: { status: 503, title: "The service is not available right now" },
  sync_reset_required: { status: 410, title: "The client must begin its synchronization anew" },
};

/** The body of an error response (RFC 9457). */
export function problemBody(code: ProblemCode, detail: string, requestId: string, faults: readonly Fault[]): Problem {
  const { status, title } = problems[code];
  return { type: `urn:problem:${code}`, title, status, detail, code, requestId, errors: [...faults] };
}

/** The error for a faulty field or parameter. `detail` describes the fault of the request as a whole. */
export const invalid = (detail: string, fault: Fault): ApiError =>
  new ApiError("validation_failed", detail, { faults: [fault] });

export const notFound = (what: string): ApiError => new ApiError("not_found", `There is no such ${what}.`);

/** Throws `not_found` if the row or record is undefined. */
export function existing<T>(row: T | undefined, what: string): T {
  if (row === undefined) throw notFound(what);
  return row;
}

/** The error for a field that refers to a missing, inactive or hidden record. It is the same for all, so it reveals no hidden record. */
export function badReference(
  record: "an active status" | "an active user" | "a user" | "an address" | "a tag",
  ...fields: readonly string[]
): ApiError {
  const message = `does not name ${record} of this company`;
  return new ApiError("validation_failed", `${fields.join(", ")}: ${message}.`, {
    faults: fields.map((field) => ({ pointer: `/${field}`, code: "invalid_reference", message })),
  });
}

/** `failed` has an entry for each failed condition: the index of the write in the transaction, and the stored item, if it exists. */
export class ConditionFailed extends Error {
  override readonly name = "ConditionFailed";
  readonly failed: ReadonlyArray<{ readonly index: number; readonly item: Record<string, unknown> | undefined }>;
  constructor(failed: ReadonlyArray<{ index: number; item: Record<string, unknown> | undefined }>) {
    super(`condition failed for write ${failed.map(({ index }) => index).join(", ")}`);
    this.failed = failed;
  }
}

export const failedAt = (error: unknown, at: number): ConditionFailed["failed"][number] | undefined =>
  error instanceof ConditionFailed ? error.failed.find(({ index }) => index === at) : undefined;

/** Returns false if a condition of the write has failed. Throws every other error. */
export async function conditionHolds(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed) return false;
    throw error;
  }
}

/** A device has changed an outdated version of a record. `record` is the current version, as the API shows it. */
export class Outdated extends Error {
  override readonly name = "Outdated";
  readonly id: number;
  readonly version: number;
  readonly record: unknown;
  constructor({ id, version }: { readonly id: number; readonly version: number }, record: unknown) {
    super(`the record has version ${version}`);
    [this.id, this.version, this.record] = [id, version, record];
  }
}

/** DynamoDB throttled all attempts, or other writers kept changing the same records. */
export class TableBusy extends Error {
  override readonly name = "TableBusy";
}

/** Shortly before the deadline, SQS has still not accepted all messages. */
export class QueueBusy extends Error {
  override readonly name = "QueueBusy";
}

/** The deadline of the current work has passed. A request to DynamoDB that was already sent may still take effect. */
export class DeadlinePassed extends Error {
  override readonly name = "DeadlinePassed";
}

/** A later release has written this row in a shape that this release does not know. A shape is a version of the row's fields. */
export class NewerShape extends Error {
  override readonly name = "NewerShape";
}

/** S3 still fails after all retries. */
export class BucketUnavailable extends Error {
  override readonly name = "BucketUnavailable";
}

/** A file in S3 is missing, or another file has replaced it since a job has first read it. */
export class FileGone extends Error {
  override readonly name = "FileGone";
}

export class InvalidSetting extends Error {
  override readonly name = "InvalidSetting";
}

/** The names of errors of this file, of AWS and of Node.js after which a retry may succeed. */
const transient =
  /Busy|Unavailable|DeadlinePassed|NewerShape|Throttl|Timeout|RequestLimitExceeded|ProvisionedThroughput|TransactionInProgress|InternalServer/;

/** Returns true if a retry may succeed. After NewerShape, the retry may run in the later release. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (transient.test(error.name)) return true;
  if ("$retryable" in error && error.$retryable !== undefined) return true;
  if ("$fault" in error && error.$fault === "server") return true;
  return (
    "code" in error && /^(ECONN|EPIPE|ETIMEDOUT|EAI_AGAIN|ENOTFOUND|EHOSTUNREACH|ENETUNREACH)/.test(String(error.code))
  );
}

/** The names of errors of a wrong deployment: AWS refuses credentials, a permission or a KMS key, or finds no table or queue. */
const deployment =
  /AccessDenied|NotAuthorized|ExpiredToken|RequestExpired|UnrecognizedClient|InvalidClientToken|InvalidSecurity|MissingAuthentication|Credentials|Signature|OptInRequired|KMS|Kms|ResourceNotFound|QueueDoesNotExist|NonExistentQueue|InvalidSetting/;

/** Returns true if the deployment is at fault. The same request succeeds as soon as an operator has repaired the deployment. */
export const isDeploymentFault = (error: unknown): boolean => error instanceof Error && deployment.test(error.name);
