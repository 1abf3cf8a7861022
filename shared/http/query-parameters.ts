/** Refuses unknown query parameters, because a misspelt filter would select all records. */
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { Contract } from "#shared/http/contract.ts";

/** Maximum number of unknown parameters that an error names, and maximum characters of each name. */
const [NAMED, NAME] = [10, 64];

export const parameterNames = ({ query, ignoredQuery = [] }: Pick<Contract, "query" | "ignoredQuery">): string[] => [
  ...Object.keys(query instanceof z.ZodMiniObject ? query.shape : {}),
  ...ignoredQuery,
];

/** Names that begin with `_` are free for clients, for example to bypass a cache. Throws `validation_failed`. */
export function requireKnown(sent: Iterable<string>, known: readonly string[]): void {
  const unknown = [...sent].filter((name) => !name.startsWith("_") && !known.includes(name));
  if (unknown.length === 0) return;
  const faults = unknown.slice(0, NAMED).map((name) => {
    const parameter = [...name].slice(0, NAME).join("");
    const message = known.length === 0 ? "is not known" : `is not known. Did you mean ${nearest(parameter, known)}?`;
    return { parameter, code: "unknown_parameter", message };
  });
  const texts = faults.map(({ parameter, message }) => `${parameter} ${message}`.replace(/\?$/, "")).join("; ");
  throw new ApiError("validation_failed", `The query of the request is not valid: ${texts}.`, { faults });
}

const nearest = (name: string, known: readonly string[]): string | undefined =>
  known.toSorted((a, b) => distance(name, a) - distance(name, b))[0];

/** The Levenshtein distance without case. */
function distance(name: string, other: string): number {
  const [from, to] = [name.toLowerCase(), other.toLowerCase()];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const letter of from) {
    const next = [(row[0] ?? 0) + 1];
    for (let i = 1; i < row.length; i++) {
      const replaced = (row[i - 1] ?? 0) + (letter === to[i - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[i] ?? 0) + 1, (next[i - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
