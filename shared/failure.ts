/** Tells passing faults of the world, worth another try, from faults that every try will meet again. */

/** What the SDK gives up on after its own retries: throttling, 5xx, time-outs, broken connections; and our own deadline. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
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
