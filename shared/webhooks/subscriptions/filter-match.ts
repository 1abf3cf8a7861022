/** Compares an event's `data` with a registration's filter. The console uses this file too, so it imports no modules of Node.js. */
import { isObject } from "#shared/json.ts";

/** Returns true if the data meets the filter. A key that the data does not have never matches. */
export function matchesFilter(filter: Record<string, unknown> | null, data: unknown): boolean {
  return filter === null || meets(filter, data);
}

function meets(criteria: Record<string, unknown>, data: unknown): boolean {
  return Object.entries(criteria).every(([path, wanted]) => {
    const found = valueAt(data, path.split("."));
    if (found === undefined) return false;
    if (isObject(wanted)) return meets(wanted, found);
    return Array.isArray(wanted) ? wanted.some((option) => option === found) : wanted === found;
  });
}

/** Reads only own properties of objects, so `__proto__`, `constructor` and the `length` of a list never match. */
function valueAt(data: unknown, path: readonly string[]): unknown {
  let at: unknown = data;
  for (const step of path) {
    if (!isObject(at) || !Object.hasOwn(at, step)) return undefined;
    at = at[step];
  }
  return at;
}
