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

/** What stands in the way of the write with this index, if its condition is among those that failed. */
export const failedAt = (error: unknown, at: number): ConditionFailed["failed"][number] | undefined =>
  error instanceof ConditionFailed ? error.failed.find(({ index }) => index === at) : undefined;

/** DynamoDB could not finish a transaction for conflicts or throttling within our tries. */
export class TableBusy extends Error {
  override readonly name = "TableBusy";
}
