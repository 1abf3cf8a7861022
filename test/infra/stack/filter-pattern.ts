/** Evaluates CloudWatch's metric filters for JSON log lines. It supports only the parts of the filter syntax that the template uses. */
import { isFields } from "../template.ts";

/**
 * Matches a comparison such as `$.a.b = "text"`. The text must not contain `*`, which CloudWatch would treat as a wildcard. The only
 * exception is `$.a.b = "*"`, which means that the field exists.
 */
const COMPARISON = /^(\$(?:\.\w+)+) = "(?:([^"\\*]*)|(\*))"$/;

/**
 * Returns true if the line matches a pattern of the form `{ $.a = "x" }`, `{ ($.a = "x") || ($.b = "y") }` or
 * `{ ($.a = "x") && ($.b = "*") }`. Throws for other patterns. A line that is not a JSON object matches no pattern.
 */
export function matches(pattern: string, line: string): boolean {
  const inside = /^\{ (.+) \}$/.exec(pattern)?.[1] ?? "";
  const isAll = inside.includes(") && (");
  const comparisons = inside.startsWith("(") ? inside.slice(1, -1).split(isAll ? ") && (" : ") || (") : [inside];
  const results = comparisons.map((comparison) => {
    const [, selector = "", wanted, any] = COMPARISON.exec(comparison) ?? [];
    if (wanted === undefined && any === undefined) throw new Error(`the pattern ${pattern} is not understood`);
    const found = selected(line, selector);
    return any === undefined ? found === wanted : found !== undefined;
  });
  return isAll ? !results.includes(false) : results.includes(true);
}

/** Returns the value at the selector, for example `$.a.b`, or undefined if the line has no such value. */
export function selected(line: string, selector: string): unknown {
  const [, ...path] = selector.split(".");
  return path.reduce<unknown>((value, name) => (isFields(value) ? value[name] : undefined), jsonOf(line));
}

/** Returns the value of a line in JSON, or undefined if the line is not JSON. */
export function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
