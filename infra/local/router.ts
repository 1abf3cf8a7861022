/**
 * Finds the API method for a request. Like API Gateway, it prefers a literal path segment to a path parameter. Also implements the
 * throttles of the stage and of the usage plans.
 */
import { ANY, type Api, type ApiMethod, methodSetting, planMethod, type Stage } from "./api-definition.ts";
import type { UsagePlanOfKeys } from "./stack.ts";

export interface Match {
  readonly method: ApiMethod;
  /** The path of the route, with names in place of values, for example `/api/prospects/{id}`. */
  readonly resource: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Finds a method. `segments` are the decoded segments of the path. API Gateway first chooses the resource by the path alone. If this
 * resource lacks the HTTP method, the result is undefined, even if another matching resource (`{proxy+}`) has the method.
 */
export type Router = (verb: string, segments: readonly string[]) => Match | undefined;

interface Node {
  readonly path: string;
  readonly fixed: Map<string, Node>;
  readonly methods: Map<string, ApiMethod>;
  parameter?: { readonly name: string; readonly greedy: boolean; readonly node: Node };
}

export function createRouter(api: Api): Router {
  const root = buildTree(api);
  return (verb, segments) => {
    const parameters = new Map<string, string>();
    const node = find(root, segments, parameters);
    const method = node && methodFor(node, verb);
    return method && node && { method, resource: node.path, parameters };
  };
}

const methodFor = (node: Node, verb: string): ApiMethod | undefined =>
  node.methods.get(verb) ?? (ANY.includes(verb) ? node.methods.get("ANY") : undefined);

function find(node: Node, segments: readonly string[], parameters: Map<string, string>): Node | undefined {
  const [segment, ...rest] = segments;
  if (segment === undefined) return node;
  const fixed = node.fixed.get(segment);
  const found = fixed && find(fixed, rest, parameters);
  if (found !== undefined) return found;
  const { parameter } = node;
  if (parameter === undefined || segment === "") return undefined;
  const below = find(parameter.node, parameter.greedy ? [] : rest, parameters);
  if (below !== undefined) parameters.set(parameter.name, parameter.greedy ? segments.join("/") : segment);
  return below;
}

function buildTree({ methods }: Api): Node {
  const root = createNode("");
  for (const method of methods) {
    const parts = method.path === "/" ? [] : method.path.split("/").slice(1);
    parts.reduce(childOf, root).methods.set(method.verb, method);
  }
  return root;
}

const createNode = (path: string): Node => ({ path: path === "" ? "/" : path, fixed: new Map(), methods: new Map() });

function childOf(parent: Node, part: string): Node {
  const name = /^\{([^+}]+)(\+?)\}$/.exec(part);
  const known = name === null ? parent.fixed.get(part) : parent.parameter?.node;
  if (known !== undefined) return known;
  const node = createNode(`${parent.path === "/" ? "" : parent.path}/${part}`);
  if (name === null) parent.fixed.set(part, node);
  else parent.parameter = { name: name[1] ?? "", greedy: name[2] === "+", node };
  return node;
}

type Setting = Pick<Stage["MethodSettings"][number], "ThrottlingRateLimit" | "ThrottlingBurstLimit">;
type Settings = readonly (Setting & Pick<Stage["MethodSettings"][number], "HttpMethod" | "ResourcePath">)[];

export type Throttle = (path: string, verb: string) => boolean;

/**
 * Creates the throttle of the stage. Each method with separate settings has its own token bucket. All other methods share one token bucket.
 */
export function createThrottle(settings: Settings, now: () => number = Date.now): Throttle {
  const buckets = new Map(
    settings.map((setting) => [`${setting.HttpMethod} ${setting.ResourcePath}`, createBucket(setting, now)]),
  );
  const common = buckets.get("* /*") ?? (() => true);
  return (path, verb) => (buckets.get(methodSetting(path, verb)) ?? common)();
}

/** Decides whether a request with this API key may pass. `unknown` means that the key is in no usage plan. */
export type KeyThrottle = (
  apiKey: string | undefined,
  path: string,
  verb: string,
) => "passes" | "throttled" | "unknown";

/**
 * Creates the throttles of the usage plans. Each API key has one token bucket for all methods, and a further bucket for each method that
 * has a separate throttle.
 */
export function createKeyThrottle(plans: readonly UsagePlanOfKeys[], now: () => number = Date.now): KeyThrottle {
  const byKey = new Map(
    plans.flatMap(({ keys, Throttle, ApiStages }) => keys.map((key) => [key, bucketsOf(Throttle, ApiStages, now)])),
  );
  return (apiKey, path, verb) => {
    const buckets = byKey.get(apiKey ?? "");
    if (buckets === undefined) return "unknown";
    // Check the bucket of the method first. A request that it refuses must not use a token of the bucket for all methods.
    return buckets.byMethod.get(planMethod(path, verb))?.() !== false && buckets.all() ? "passes" : "throttled";
  };
}

type PlanLimits = UsagePlanOfKeys["Throttle"];

function bucketsOf(all: PlanLimits, stages: UsagePlanOfKeys["ApiStages"], now: () => number) {
  const bucket = ({ RateLimit, BurstLimit }: PlanLimits) =>
    createBucket({ ThrottlingRateLimit: RateLimit, ThrottlingBurstLimit: BurstLimit }, now);
  const methods = stages.flatMap(({ Throttle }) => Object.entries(Throttle));
  return { all: bucket(all), byMethod: new Map(methods.map(([method, limits]) => [method, bucket(limits)])) };
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
