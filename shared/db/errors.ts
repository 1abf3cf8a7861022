/** What a write of the table can fail with besides what the service answers. */
import type { Item } from "#shared/db/table.ts";

/** A condition did not hold. `failed` holds, per write of the transaction, whether its condition failed, with the item that stands there. */
export class ConditionFailed extends Error {
  readonly failed: ReadonlyArray<{ readonly index: number; readonly item: Item | undefined }>;
  constructor(failed: ReadonlyArray<{ index: number; item: Item | undefined }>) {
    super(`condition failed for write ${failed.map(({ index }) => index).join(", ")}`);
    this.name = "ConditionFailed";
    this.failed = failed;
  }
}

/** DynamoDB could not finish a transaction for conflicts or throttling within our tries. */
export class TableBusy extends Error {
  override readonly name = "TableBusy";
}
