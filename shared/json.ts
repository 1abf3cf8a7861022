/** JSON objects whose keys callers make up themselves. */
import * as z from "zod/mini";

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

interface Place {
  readonly value: unknown;
  readonly path: readonly (string | number)[];
}

/**
 * Refuses numbers that JSON text cannot give back: `1e999` is valid JSON, is read as Infinity and would be written as null.
 * To be asked of values whose size and depth are known to be small.
 */
export const finiteNumbers = z.check<Record<string, unknown>>(({ value: object, issues }) => {
  const places: Place[] = [{ value: object, path: [] }];
  for (const { value, path } of places) {
    if (typeof value === "number" && !Number.isFinite(value)) {
      issues.push({ code: "custom", input: value, path: [...path], message: "is too large for a number" });
    }
    if (typeof value !== "object" || value === null) continue;
    const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [step, entry] of entries) places.push({ value: entry, path: [...path, step] });
  }
});
