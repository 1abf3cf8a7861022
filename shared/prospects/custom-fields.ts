/** The free key/value store of a prospect: any JSON object within limits of size and number of keys. */

import * as z from "zod/mini";
import { finiteNumbers, isObject } from "#shared/json.ts";
import { limits } from "#shared/limits.ts";

/**
 * Taken and given back as it is: the value is checked as a whole and never rebuilt key by key, so that keys such as
 * `__proto__` stay plain data.
 */
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
    finiteNumbers,
    z.meta({ type: "object", additionalProperties: true, maxProperties: limits.customFieldKeys }),
  );

/** JSON.stringify writes a lone surrogate as an escape, so well-formedness is looked for there. */
function fits(value: Record<string, unknown>): boolean {
  const json = JSON.stringify(value);
  return Buffer.byteLength(json) <= limits.customFieldBytes && !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(json);
}

/** Level by level, so that no depth of a hostile value can exhaust the stack. */
function isShallow(value: Record<string, unknown>): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.customFieldDepth) return false;
    level = level.flatMap((entry) => (typeof entry === "object" && entry !== null ? Object.values(entry) : []));
  }
  return true;
}
