/**
 * The numbers of the shapes (versions of the fields) of stored rows. If a later release has written a row in a shape that this release
 * does not know, reading it throws. This release can therefore neither misread the row nor write it back without its new fields.
 */
import type { Item } from "#shared/db/expression.ts";
import { NewerShape } from "#shared/errors.ts";

/**
 * The newest shape that this release can read, by type of row. It is 1 for every other type. Increase the number with each change of a
 * stored row, and store it in the attribute `shape` of the rows with the new shape (docs/releasing.md). Rows with the numbers in this
 * list have no such attribute, because they differ in their fields.
 */
export const shapes: Readonly<Record<string, number>> = { prospect: 2, import: 2, identity: 2 };

export const shapeOf = (type: string): number => shapes[type] ?? 1;

/** Returns the item. Throws NewerShape if a later release has written it in a shape that this release does not know. */
export function readable<T extends Item>(item: T): T {
  const { shape, type, pk, sk } = item;
  if (shape === undefined) return item;
  const known = shapeOf(String(type));
  if (typeof shape === "number" && shape <= known) return item;
  throw new NewerShape(
    `the row ${String(pk)} ${String(sk)} of type ${String(type)} has shape ${String(shape)}, and this release reads shapes up to ${known}: a later release has written it`,
  );
}

export const withShape = (fields: readonly string[]): string[] => [
  ...new Set([...fields, "pk", "sk", "type", "shape"]),
];
