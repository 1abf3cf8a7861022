/** The filter of a registration (filter-match.ts has the rules). Users write filters, so a filter must never be executed as code. */
import * as z from "zod/mini";
import { finiteNumbers, isObject } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";

type Json = z.infer<ReturnType<typeof z.json>>;

export const EventFilter = z
  .custom<Record<string, Json>>(isObject, { error: "must be a JSON object", abort: true })
  .check(
    z.refine((filter) => measure(filter).depth <= limits.filterDepth, {
      error: `must have at most ${limits.filterDepth} levels, counting dots`,
      abort: true,
    }),
    z.refine((filter) => measure(filter).keys <= limits.filterKeys, {
      error: `must have at most ${limits.filterKeys} keys on all levels together`,
      abort: true,
    }),
    z.refine((filter) => Buffer.byteLength(JSON.stringify(filter)) <= limits.filterBytes, {
      error: `must have at most ${limits.filterBytes} bytes as JSON`,
      abort: true,
    }),
    finiteNumbers,
    z.meta({ type: "object", additionalProperties: true }),
  );
export type EventFilter = z.infer<typeof EventFilter>;

/**
 * Measures depth and number of keys. It stops as soon as the depth exceeds `limits.filterDepth`, so that a hostile filter takes little
 * time. An object or a list within a list has infinite depth, because a filter must not contain it.
 */
function measure(filter: Record<string, unknown>): { depth: number; keys: number } {
  let keys = 0;
  let deepest = 0;
  const open: Array<{ value: unknown; depth: number }> = [{ value: filter, depth: 0 }];
  for (let next = open.pop(); next !== undefined && deepest <= limits.filterDepth; next = open.pop()) {
    if (Array.isArray(next.value)) {
      for (const entry of next.value) {
        if (isObject(entry) || Array.isArray(entry)) return { depth: Number.POSITIVE_INFINITY, keys };
      }
      continue;
    }
    if (!isObject(next.value)) continue;
    for (const [key, value] of Object.entries(next.value)) {
      keys++;
      const depth = next.depth + key.split(".").length;
      deepest = Math.max(deepest, depth);
      open.push({ value, depth });
    }
  }
  return { depth: deepest, keys };
}
