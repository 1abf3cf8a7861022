/** Tells passing faults, worth another attempt, from faults that every attempt will meet again. */
import { BucketUnavailable } from "#shared/aws/file-errors.ts";
import { TableBusy } from "#shared/db/errors.ts";

/** What is given up after a few tries: throttling, 5xx, time-outs, broken connections; and our own deadline. */
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
