/**
 * The numbers of the shapes of stored rows. A shape is a version of the fields that a type of row has. If a later release has written a row
 * in a shape that this release does not know, reading the row throws. This release therefore cannot misread the row, and cannot write it
 * back without its new fields.
 */
import type { Item } from "#shared/db/expression.ts";
import { NewerShape } from "#shared/errors.ts";

/**
 * The newest shape that this release can read, by type of row. It is 1 for every other type. Increase the number with each change of a
 * stored row, and store it in the attribute `shape` of the rows with the new shape (docs/releasing.md). Rows of prospects,
 * imports and identities have no such attribute, because their shapes differ in their fields. Deliveries, debounce windows, fan-outs and
 * the rows of the company index have none either: shape 2 adds optional fields, which release 0.1.0 ignores. The fan-outs of bulk jobs lack
 * a field that it needs, but they have a partition of their own, which it does not read.
 */
export const shapes: Readonly<Record<string, number>> = {
  prospect: 2,
  import: 2,
  identity: 2,
  note: 2,
  appointment: 2,
  history: 2,
  delivery: 2,
  /** A queue message about a delivery. */
  message: 2,
  window: 2,
  fanOut: 2,
  delta: 2,
  indexHead: 2,
};

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
