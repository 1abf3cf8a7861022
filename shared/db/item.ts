/** The shapes that every call of the table takes and gives: an item, and one write of a transaction. */
import type { Change, Condition } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";

/** A stored item as it comes: entities parse it with their schema before anyone reads a field. */
export type Item = Record<string, unknown>;

export type Write =
  | { readonly put: Key & Item; readonly when?: Condition }
  | { readonly update: Key; readonly change: Change; readonly when?: Condition }
  | { readonly remove: Key; readonly when?: Condition }
  | { readonly check: Key; readonly when: Condition };
