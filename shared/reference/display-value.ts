/**
 * Keeps the values of a company's statuses and tags unique, ignoring case. A write that takes a value creates its row, and fails if the row
 * exists.
 */
import * as z from "zod/mini";
import { folded } from "#shared/caseless.ts";
import type { ApiContext } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import type { Item, Write } from "#shared/db/expression.ts";
import { absent, equals } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
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

const claimValue = (companyId: number, kind: Kind, { id, value }: ValuedRow): Write => ({
  put: { ...keys.uniqueValue(companyId, kind, folded(value)), type: "uniqueValue", id },
  when: absent,
});

export const releaseValue = (companyId: number, kind: Kind, { value }: ValuedRow): Write => ({
  remove: keys.uniqueValue(companyId, kind, folded(value)),
});

export function newValuedRow(companyId: number, kind: Kind, row: Key & Item & ValuedRow): Write[] {
  return [{ put: row, when: absent }, claimValue(companyId, kind, row)];
}

/** Writes nothing if `patched` returns its argument unchanged. Throws `conflict` if another status or tag has the new value. */
export function changeValuedRow<Row extends ValuedRow>(
  { table }: ApiContext,
  companyId: number,
  kind: Kind,
  read: () => Promise<Row>,
  patched: (current: Row) => Row,
): Promise<Row> {
  const key = kind === "STATUS" ? keys.status : keys.tag;
  const work = async (): Promise<Row> => {
    const current = await read();
    const changed = patched(current);
    if (changed === current) return current;
    const next = nextVersion(current, changed);
    const writes: Write[] = [
      { put: { ...key(companyId, next.id), ...next }, when: equals("version", current.version) },
    ];
    if (folded(next.value) !== folded(current.value)) {
      writes.push(claimValue(companyId, kind, next), releaseValue(companyId, kind, current));
    }
    await table.transact([...writes, ...namesChange(companyId, changeOf(current, next))]);
    return next;
  };
  return optimistic(work, (error) => error.failed.some(({ index }) => index === 0)).catch(duplicateValue(kind));
}

export const duplicateValue =
  (kind: Kind) =>
  (error: unknown): never => {
    if (!(error instanceof ConditionFailed)) throw error;
    throw new ApiError("conflict", `Another ${kind.toLowerCase()} already has this value.`);
  };
