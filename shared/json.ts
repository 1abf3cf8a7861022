/** Checks of JSON objects with arbitrary keys. */
import * as z from "zod/mini";

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

interface Entry {
  readonly value: unknown;
  readonly path: readonly (string | number)[];
}

/**
 * `1e999` is valid JSON, but JSON.parse returns Infinity, which JSON.stringify writes as null. Only for values of limited size and depth.
 */
export const finiteNumbers = /* @__PURE__ */ z.check<Record<string, unknown>>(({ value: object, issues }) => {
  const entries: Entry[] = [{ value: object, path: [] }];
  for (const { value, path } of entries) {
    if (typeof value === "number" && !Number.isFinite(value)) {
      issues.push({ code: "custom", input: value, path: [...path], message: "is too large for a number" });
    }
    if (typeof value !== "object" || value === null) continue;
    const children = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [step, child] of children) entries.push({ value: child, path: [...path, step] });
  }
});
