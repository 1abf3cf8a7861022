/** Finds the API method for a request. Like API Gateway, it prefers a literal path segment to a path parameter. */
import { ANY, type Api, type ApiMethod } from "../template/api-definition.ts";

export interface Match {
  readonly method: ApiMethod;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Returns a function that finds a method. Like API Gateway, it chooses the resource by the path, even if that lacks the HTTP method. */
export function createRouter({ methods }: Api) {
  const resources = [...Map.groupBy(methods, ({ path }) => path)]
    .map(([path, own]) => ({ path, parts: partsOf(path), byVerb: new Map(own.map((method) => [method.verb, method])) }))
    .toSorted((a, b) => (kindsOf(a.parts) < kindsOf(b.parts) ? -1 : 1));
  return (verb: string, segments: readonly string[]): Match | undefined => {
    const found = resources.find(({ parts }) => matches(parts, segments));
    const method = found?.byVerb.get(verb) ?? (ANY.includes(verb) ? found?.byVerb.get("ANY") : undefined);
    if (found === undefined || method === undefined) return undefined;
    return { method, parameters: parametersOf(found.parts, segments) };
  };
}

const partsOf = (path: string): string[] => (path === "/" ? [] : path.split("/").slice(1));
const isParameter = (part: string): boolean => part.startsWith("{");
/** Returns true for a path parameter such as `{path+}`, which matches all further segments. */
const isGreedy = (part: string): boolean => part.endsWith("+}");

/** Returns a sort key. A path with a literal segment comes before a path with a parameter at the same position. */
const kindsOf = (parts: readonly string[]): string =>
  parts.map((part) => (isGreedy(part) ? "2" : isParameter(part) ? "1" : "0")).join("");

function matches(parts: readonly string[], segments: readonly string[]): boolean {
  const isLong = parts.some(isGreedy) && segments.length > parts.length;
  return (
    (isLong || parts.length === segments.length) &&
    parts.every((part, i) => (isParameter(part) ? segments[i] !== "" : segments[i] === part))
  );
}

const parametersOf = (parts: readonly string[], segments: readonly string[]): Map<string, string> =>
  new Map(
    parts.flatMap((part, i): [string, string][] => {
      const values = isGreedy(part) ? segments.slice(i) : segments.slice(i, i + 1);
      return isParameter(part) ? [[part.replace(/[{}+]/g, ""), values.join("/")]] : [];
    }),
  );
