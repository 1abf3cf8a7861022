/** Receipts of operations. The transaction of an operation writes its receipt, and fails if the receipt exists already. */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan, Written } from "#shared/db/plan.ts";
import { ApiError, ConditionFailed, failedAt } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";

export const StoredReceipt = z.object({
  type: z.literal("receipt"),
  /** A hash of the operation. It shows whether the same `opId` was used for another operation. */
  fingerprint: z.string(),
  /** The id and the version of the written record. */
  id: Id,
  version: z.int(),
  /** In seconds since 1970, for DynamoDB's TTL. */
  expiresAt: z.int(),
});

export class HasReceipt extends Error {
  override readonly name = "HasReceipt";
  readonly written: Written;
  constructor(written: Written) {
    super("the operation was applied before");
    this.written = written;
  }
}

export interface Receipt {
  /** Commits the plan of the operation with its receipt. If there is a receipt already, throws the errors of `check`. */
  readonly commit: (plan: Plan<unknown>) => Promise<void>;
  /** Throws HasReceipt if the operation has a receipt. Throws `idempotency_mismatch` if another operation has used its `opId`. */
  readonly check: () => Promise<void>;
}

export function receiptOf(
  { table, clock }: Pick<ApiContext, "table" | "clock">,
  { companyId, userId }: Caller,
  opId: string,
  payload: unknown,
): Receipt {
  const key = keys.receipt(companyId, userId, opId.toLowerCase());
  const fingerprint = createHash("sha256").update(canonical(payload)).digest("base64url");

  function found(item: unknown): never {
    const { id, version, ...receipt } = StoredReceipt.parse(item);
    if (receipt.fingerprint !== fingerprint) {
      throw new ApiError("idempotency_mismatch", "This opId was used for another operation.");
    }
    throw new HasReceipt({ id, version });
  }

  return {
    async commit(plan) {
      const { writes } = plan;
      const { id, version } = writtenBy(plan);
      const expiresAt = Math.ceil((clock.now() + limits.receiptKeptMs) / 1_000);
      const stored: z.infer<typeof StoredReceipt> = { type: "receipt", fingerprint, id, version, expiresAt };
      const receipt = { put: { ...key, ...stored }, when: absent } satisfies Write;
      try {
        if (writes.length === 0) await table.write(receipt);
        else await table.transact([...writes, receipt]);
      } catch (error) {
        const failure = failedAt(error, writes.length);
        if (failure === undefined) throw error;
        // DynamoDB returns the existing receipt with the error, unless the receipt was deleted meanwhile. Then the verb is called again.
        if (failure.item === undefined) throw new ConditionFailed([]);
        found(failure.item);
      }
    },
    async check() {
      const item = await table.get(key);
      if (item !== undefined) found(item);
    },
  };
}

export function writtenBy({ written }: Plan<unknown>): Written {
  if (written === undefined) throw new Error("the plan of an operation has no record");
  return written;
}

/** Returns a JSON text that does not depend on the order of an object's keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
