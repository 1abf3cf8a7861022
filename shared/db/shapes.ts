/** A shape is a numbered version of a row's fields. An unknown shape is not read, because writing the row back would drop new fields. */
import type { Item } from "#shared/db/expression.ts";
import { NewerShape } from "#shared/errors.ts";

/**
 * The newest shape of each type of row that this release can read. It is 1 for a type that is not listed. Increase the number when the
 * stored fields change, and store it in the attribute `shape` of each row with the new shape (docs/releasing.md).
 */
export const shapes: Readonly<Record<string, number>> = {};

export const shapeOf = (type: string): number => shapes[type] ?? 1;

/** Throws NewerShape if a later release has written the item in an unknown shape. */
export function readable<T extends Item>(item: T, knownType?: string): T {
  const { shape, type = knownType, pk, sk, id } = item;
  if (shape === undefined) return item;
  const known = shapeOf(String(type));
  if (typeof shape === "number" && shape <= known) return item;
  // A read with `fields` may return an item without its key.
  const row = pk === undefined ? `row with the id ${String(id)}` : `row ${String(pk)} ${String(sk)}`;
  throw new NewerShape(
    `the ${row} of type ${String(type)} has shape ${String(shape)}, and this release reads shapes up to ${known}: a later release has written it`,
  );
}

/** Adds to the fields of a read those that `readable` needs. */
export const withShape = (fields: readonly string[], type: string | undefined): string[] => [
  ...new Set([...fields, ...(type === undefined ? ["type"] : []), "shape"]),
];
