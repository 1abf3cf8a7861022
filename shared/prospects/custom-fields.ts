/** The schema of custom fields. It is not in schema.ts, so that the bundle of import jobs does not contain that file. */
import * as z from "zod/mini";
import { exactNumbers, isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";

/** The object is never rebuilt key by key, so that a key such as `__proto__` remains plain data. */
export const CustomFields = z
  .custom<Record<string, unknown>>(isObject, { error: "must be a JSON object", abort: true })
  .check(
    z.refine((value) => Object.keys(value).length <= limits.customFieldKeys, {
      error: `must have at most ${limits.customFieldKeys} keys`,
      abort: true,
    }),
    z.refine((value) => isShallow(value), {
      error: `must not nest deeper than ${limits.customFieldDepth} levels`,
      abort: true,
    }),
    z.refine((value) => fits(value), {
      error: `must take at most ${limits.customFieldBytes} bytes as JSON, in well-formed Unicode`,
      abort: true,
    }),
    exactNumbers,
    z.meta({ type: "object", additionalProperties: true, maxProperties: limits.customFieldKeys }),
  );

/** JSON.stringify escapes lone surrogates, so a regular expression finds them. */
function fits(value: Record<string, unknown>): boolean {
  const json = JSON.stringify(value);
  return Buffer.byteLength(json) <= limits.customFieldBytes && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(json);
}

/** A loop, because deep nesting could exhaust the stack of a recursion. */
function isShallow(value: Record<string, unknown>): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.customFieldDepth) return false;
    level = level.flatMap((entry) => (typeof entry === "object" && entry !== null ? Object.values(entry) : []));
  }
  return true;
}
