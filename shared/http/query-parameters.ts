/** Refuses unknown query parameters, because a misspelt filter would select all records. */
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { Contract } from "#shared/http/contract.ts";
import { nearestOf } from "#shared/nearest.ts";

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
    return { parameter, code: "unknown_parameter", message: `is not known${helpFor(parameter, known)}` };
  });
  const texts = faults.map(({ parameter, message }) => `${parameter} ${message}`.replace(/\.$/, "")).join("; ");
  const detail = `The query of the request is not valid: ${texts}`;
  throw new ApiError("validation_failed", detail.endsWith("?") ? detail : `${detail}.`, { faults });
}

/** The beginning of a known name is similar too, for example `tag` for `tagId`. */
function helpFor(name: string, known: readonly string[]): string {
  const begun = (other: string): boolean => name.length > 2 && other.toLowerCase().startsWith(name.toLowerCase());
  const similar = nearestOf(name, known) ?? known.find(begun);
  if (similar !== undefined) return `. Did you mean ${similar}?`;
  const nearest = nearestOf(name, known, Number.POSITIVE_INFINITY);
  return nearest === undefined ? "" : `. The nearest known name is ${nearest}.`;
}
