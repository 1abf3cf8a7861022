/** One record of the table's stream: a row before and after a write. */
import type { Item } from "#shared/db/item.ts";

/** `before` is absent for a new row, `after` for a removed one. */
export interface RowChange {
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}
