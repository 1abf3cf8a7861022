/** Implements the throttles of the stage and of the usage plan as token buckets. */
import { methodSetting, planMethod } from "../template/api-definition.ts";
import type { Stack, UsagePlanOfKeys } from "../template/stack.ts";

type Settings = Stack["stage"]["MethodSettings"];

/** Returns a function that says if a request passes. A method with settings of its own has a token bucket. All other methods share one. */
export function createThrottle(settings: Settings, now: () => number = Date.now) {
  const buckets = new Map(
    settings.map(({ HttpMethod, ResourcePath, ThrottlingRateLimit: RateLimit, ThrottlingBurstLimit: BurstLimit }) => [
      `${HttpMethod} ${ResourcePath}`,
      createBucket({ RateLimit, BurstLimit }, now),
    ]),
  );
  const common = buckets.get("* /*") ?? (() => true);
  return (path: string, verb: string): boolean => (buckets.get(methodSetting(path, verb)) ?? common)();
}

/**
 * Returns a function that says if a request with an API key passes. Each API key has one token bucket for all methods, and a further one
 * for each method with a throttle of its own. `unknown` means that the key is not in the usage plan.
 */
export function createKeyThrottle({ keys, Throttle: all, ApiStages: [stage] }: UsagePlanOfKeys) {
  const bucketsOf = () => ({
    all: createBucket(all),
    byMethod: new Map(Object.entries(stage.Throttle).map(([method, limits]) => [method, createBucket(limits)])),
  });
  const byKey = new Map(keys.map((key) => [key, bucketsOf()]));
  return (apiKey: string | undefined, path: string, verb: string): "passes" | "throttled" | "unknown" => {
    const buckets = byKey.get(apiKey ?? "");
    if (buckets === undefined) return "unknown";
    // A request that the bucket of the method refuses must not use a token of the bucket for all methods.
    return buckets.byMethod.get(planMethod(path, verb))?.() !== false && buckets.all() ? "passes" : "throttled";
  };
}

function createBucket(
  { RateLimit: rate, BurstLimit: burst }: UsagePlanOfKeys["Throttle"],
  now = Date.now,
): () => boolean {
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
