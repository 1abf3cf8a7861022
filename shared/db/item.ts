/** An item of the table, and one write of a transaction. */
import type { Change, Condition } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";

/** A stored item. Parse it with its schema before you read a field. */
export type Item = Record<string, unknown>;

export type Write =
  | { readonly put: Key & Item; readonly when?: Condition }
  | { readonly update: Key; readonly change: Change; readonly when?: Condition }
  | { readonly remove: Key; readonly when?: Condition }
  | { readonly check: Key; readonly when: Condition };
