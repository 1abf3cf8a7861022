/** Tells passing faults of the world, worth another try, from faults that every try will meet again. */
import { AwsError } from "#shared/aws/json-call.ts";

/** What is given up after a few tries: throttling, 5xx, time-outs, broken connections; and our own deadline. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AwsError) return error.isPassing;
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
