/**
 * Keeps the values of a company's statuses and tags unique, ignoring case. A write that takes a value creates its row, and fails if the row
 * exists.
 */
import * as z from "zod/mini";
import { folded } from "#shared/caseless.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { absent, equals } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { changeOf, namesChange, nextVersion } from "#shared/reference/dictionary.ts";
import type { StoredStatus, StoredTag } from "#shared/reference/schema.ts";
import { codePoints, label, text } from "#shared/schema.ts";

/**
 * Commas and semicolons separate values in filters and CSV cells. The NFC form is part of a table key of at most 1 024 bytes, and can be
 * longer than the value, so the length limit applies to both.
 */
export const DisplayValue = z.pipe(
  text(limits.displayValue, 1).check(z.trim()),
  label(limits.displayValue).check(
    z.regex(/^[^,;]*$/, "must not hold a comma or semicolon"),
    z.refine((value) => codePoints(value.normalize("NFC")) <= limits.displayValue, {
      error: `must have at most ${limits.displayValue} characters`,
    }),
  ),
);

export type Kind = "STATUS" | "TAG";

type ValuedRow = StoredStatus | StoredTag;

/** Throws `conflict` if another status or tag has the value. */
const claimValue = (companyId: number, kind: Kind, { id, value }: ValuedRow): Write => ({
  put: { ...keys.uniqueValue(companyId, kind, folded(value)), type: "uniqueValue", id },
  when: absent,
  orThrow: () => new ApiError("conflict", `Another ${kind.toLowerCase()} already has this value.`),
});

export const releaseValue = (companyId: number, kind: Kind, { value }: ValuedRow): Write => ({
  remove: keys.uniqueValue(companyId, kind, folded(value)),
});

export function newValuedRow(companyId: number, kind: Kind, row: Key & Item & ValuedRow): Write[] {
  return [{ put: row, when: absent }, claimValue(companyId, kind, row)];
}

export function valuedRowChange<Row extends ValuedRow>(
  companyId: number,
  kind: Kind,
  current: Row,
  changed: Row,
): Plan<Row> {
  const key = kind === "STATUS" ? keys.status : keys.tag;
  const next = nextVersion(current, changed);
  const isRenamed = folded(next.value) !== folded(current.value);
  const writes: Write[] = [
    { put: { ...key(companyId, next.id), ...next }, when: equals("version", current.version) },
    ...(isRenamed ? [claimValue(companyId, kind, next), releaseValue(companyId, kind, current)] : []),
    ...namesChange(companyId, changeOf(current, next)),
  ];
  return { writes, answer: next };
}
