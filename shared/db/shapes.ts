/**
 * The numbers of the shapes of stored rows. A shape is a version of the fields that a type of row has. If a later release has written a row
 * in a shape that this release does not know, reading the row throws. This release therefore cannot misread the row, and cannot write it
 * back without the new fields.
 */
import type { Item } from "#shared/db/expression.ts";
import { NewerShape } from "#shared/errors.ts";

/**
 * The newest shape of each type of row that this release can read. It is 1 for a type that is not listed, as in release 1.0.0. Increase the
 * number when the stored fields change, and store it in the attribute `shape` of rows with the new shape (docs/releasing.md).
 */
export const shapes: Readonly<Record<string, number>> = {
  receipt: 2,
};

export const shapeOf = (type: string): number => shapes[type] ?? 1;

/** Returns the item. Throws NewerShape if a later release has written it in a shape that this release does not know. */
export function readable<T extends Item>(item: T, knownType?: string): T {
  const { shape, type = knownType, pk, sk, id } = item;
  if (shape === undefined) return item;
  const known = shapeOf(String(type));
  if (typeof shape === "number" && shape <= known) return item;
  // If a read asks for only some fields, the item may lack its key. The message then names the id.
  const row = pk === undefined ? `row with the id ${String(id)}` : `row ${String(pk)} ${String(sk)}`;
  throw new NewerShape(
    `the ${row} of type ${String(type)} has shape ${String(shape)}, and this release reads shapes up to ${known}: a later release has written it`,
  );
}

/** Adds the fields that `readable` needs. If the type of the items is known, the field `type` is not needed. */
export const withShape = (fields: readonly string[], type: string | undefined): string[] => [
  ...new Set([...fields, ...(type === undefined ? ["type"] : []), "shape"]),
];
