/** The stage's throttle: a token bucket for all methods together, in each second the rate and at once at most the burst. */
import type { Stage } from "./api-resources.ts";

type Settings = readonly Pick<Stage["MethodSettings"][number], "ThrottlingRateLimit" | "ThrottlingBurstLimit">[];

/** Takes one token; false means that the request is over the limit. */
export function createThrottle([setting]: Settings, now: () => number = Date.now): () => boolean {
  const rate = setting?.ThrottlingRateLimit ?? Number.POSITIVE_INFINITY;
  const burst = setting?.ThrottlingBurstLimit ?? Number.POSITIVE_INFINITY;
  if (rate === Number.POSITIVE_INFINITY || burst === Number.POSITIVE_INFINITY) return () => true;
  let tokens = burst;
  let filledAt = now();
  return () => {
    const at = now();
    tokens = Math.min(burst, tokens + ((at - filledAt) / 1000) * rate);
    filledAt = at;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
}
