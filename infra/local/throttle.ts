/** The stage's throttles: a token bucket for all methods together, and one for each method with a setting of its own. */
import { methodSetting, type Stage } from "./api-resources.ts";

type Setting = Pick<Stage["MethodSettings"][number], "ThrottlingRateLimit" | "ThrottlingBurstLimit">;
type Settings = readonly (Setting & Pick<Stage["MethodSettings"][number], "HttpMethod" | "ResourcePath">)[];

/** Takes one token for a call of a path of the template; false means that the call is over the limit. */
export type Throttle = (path: string, verb: string) => boolean;

export function createThrottle(settings: Settings, now: () => number = Date.now): Throttle {
  const buckets = new Map(
    settings.map((setting) => [`${setting.HttpMethod} ${setting.ResourcePath}`, createBucket(setting, now)]),
  );
  const common = buckets.get("* /*") ?? (() => true);
  return (path, verb) => (buckets.get(methodSetting(path, verb)) ?? common)();
}

function createBucket(setting: Setting, now: () => number): () => boolean {
  const rate = setting.ThrottlingRateLimit ?? Number.POSITIVE_INFINITY;
  const burst = setting.ThrottlingBurstLimit ?? Number.POSITIVE_INFINITY;
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
