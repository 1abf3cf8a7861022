/** Parses JSON, and checks JSON objects with arbitrary keys. */
import * as z from "zod/mini";

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Parses JSON. Returns undefined if the text is not JSON: every schema of an object refuses undefined. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For each object that `readJson` has made: the keys and texts of integers beyond 2^53 - 1. A double represents few of them exactly. */
const inexact = new WeakMap<object, Map<string, string>>();

const Source = z.object({ source: z.string() });

/** Parses JSON. Remembers each integer beyond 2^53 - 1, because the parsed number may differ from it. `exactNumbers` rejects them. */
export function readJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, function (this: object, ...[key, value, context]: readonly unknown[]) {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const { source } = Source.parse(context);
    if (/^-?\d+$/.test(source)) inexact.set(this, (inexact.get(this) ?? new Map()).set(String(key), source));
    return value;
  });
}

interface Entry {
  readonly value: unknown;
  readonly path: readonly (string | number)[];
  /** The text of an integer beyond 2^53 - 1 in an object that `readJson` has made. */
  readonly source?: string | undefined;
}

/** Checks all numbers in an object of limited size. The parameter `found` of a zod issue is the number, or the text of an inexact one. */
const numbers = (faultOf: (value: number, isInexact: boolean) => string | undefined) =>
  z.check<Record<string, unknown>>(({ value: object, issues }) => {
    const entries: Entry[] = [{ value: object, path: [] }];
    for (const { value, path, source } of entries) {
      const message = typeof value === "number" ? faultOf(value, source !== undefined) : undefined;
      const params = { found: source ?? value };
      if (message !== undefined) issues.push({ code: "custom", input: value, path: [...path], message, params });
      if (typeof value !== "object" || value === null) continue;
      const marked = inexact.get(value);
      const children = Array.isArray(value) ? value.entries() : Object.entries(value);
      for (const [step, child] of children) {
        entries.push({ value: child, path: [...path, step], source: marked?.get(String(step)) });
      }
    }
  });

/** `1e999` is valid JSON, but JSON.parse returns Infinity, which JSON.stringify writes as null. */
const finite = (value: number): string | undefined =>
  Number.isFinite(value) ? undefined : "is too large for a number";

export const finiteNumbers = /* @__PURE__ */ numbers(finite);
export const exactNumbers = /* @__PURE__ */ numbers((value, isInexact) =>
  isInexact ? "is an integer beyond 2^53 - 1: send it as a text" : finite(value),
);
