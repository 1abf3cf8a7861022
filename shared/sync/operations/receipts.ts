/**
 * Receipts of operations. By its receipt, the service recognises an operation that was applied before. An operation that is sent several
 * times, even concurrently, is therefore applied once.
 *
 * Usually, the transaction that applies an operation also writes its receipt, on the condition that there is none yet. Operations that
 * create or delete a prospect have a cheaper kind of receipt, the claim (claims.ts).
 */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext, Written } from "#shared/context.ts";
import { optimistic } from "#shared/db/conditional-writes.ts";
import { absent, all, type Condition, equals, type Item, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, failedAt } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { Id } from "#shared/schema.ts";
import { CLAIM_SHAPE, effectOf, isRecent, markOf, StoredClaim, type Subject } from "#shared/sync/operations/claims.ts";

const StoredWithEffect = z.object({
  type: z.literal("receipt"),
  /** A hash of the operation. It shows whether the same `opId` was used for another operation. */
  fingerprint: z.string(),
  /** The id of the record that the operation has written, and the record's version after this write. */
  id: Id,
  version: z.int(),
  /** DynamoDB's TTL deletes the row after this time, in seconds since 1970. */
  expiresAt: z.int(),
});

/** The row of a receipt: one that was written together with the effect of its operation, or a claim. */
export const StoredReceipt = z.union([StoredWithEffect, StoredClaim]);

/** The operation has a receipt: it was applied before. */
export class HasReceipt extends Error {
  override readonly name = "HasReceipt";
  readonly written: Written;
  constructor(written: Written) {
    super("the operation was applied before");
    this.written = written;
  }
}

/** Another operation has claimed the same `opId`, and may still be applied. The name contains `Busy`, because a retry may succeed. */
export class OpIdBusy extends Error {
  override readonly name = "OpIdBusy";
}

export interface Receipts {
  /** A context whose `commit` also writes the receipt. If the operation was applied before, `commit` writes nothing and throws as `check`. */
  readonly context: ApiContext;
  /** Returns the record that the last commit has written. Returns undefined before a commit. */
  readonly written: () => Written | undefined;
  /** Throws HasReceipt if the operation was applied before. Throws `idempotency_mismatch` if another operation has used its `opId`. */
  readonly check: () => Promise<void>;
}

/** Prepares the receipt of one operation. `subject` is the prospect that the operation creates or deletes. Other operations have none. */
export function receiptOf(
  context: ApiContext,
  caller: Caller,
  sentOpId: string,
  payload: unknown,
  subject: Subject | undefined,
): Receipts {
  const { table, clock } = context;
  const opId = sentOpId.toLowerCase();
  const key = keys.receipt(caller.companyId, caller.userId, opId);
  const fingerprint = createHash("sha256").update(canonical(payload)).digest("base64url");
  const mark = markOf(caller.userId, opId, fingerprint);
  /** The condition under which this operation may write its receipt. */
  let isFree: Condition = absent;
  let isClaimed = false;
  let last: Written | undefined;

  /** Returns the claim in this row, and whether its operation may still be applied. Throws as `check` does. */
  async function requireUnapplied(item: Item): Promise<{ claim: StoredClaim; isOpen: boolean }> {
    const found = StoredReceipt.parse(item);
    const isOwn = found.fingerprint === fingerprint;
    if ("version" in found) throw isOwn ? new HasReceipt({ id: found.id, version: found.version }) : mismatch();
    const effect = await effectOf(context, caller, found);
    if (effect?.mark === mark) throw new HasReceipt(effect.written);
    if (effect?.mark === markOf(caller.userId, opId, found.fingerprint)) throw mismatch();
    return { claim: found, isOpen: effect === undefined };
  }

  /**
   * Sets the condition under which this operation may replace the row that made its last attempt fail. Throws as `check` does. Throws
   * OpIdBusy if the row is a claim of another operation that may still be applied: both operations could then have an effect. An own claim
   * is replaced too, so that it counts as recent while this attempt is running.
   */
  async function makeWay(item: Item | undefined): Promise<void> {
    isFree = absent;
    if (item === undefined) return;
    const { claim, isOpen } = await requireUnapplied(item);
    if (claim.fingerprint !== fingerprint && isOpen && isRecent(claim, clock.now())) throw new OpIdBusy();
    isFree = all(equals("fingerprint", claim.fingerprint), equals("expiresAt", claim.expiresAt));
  }

  const common = () => {
    const expiresAt = Math.ceil((clock.now() + limits.receiptKeptMs) / 1_000);
    return { type: "receipt" as const, fingerprint, expiresAt };
  };

  const writeClaim = (claimed: Subject): Promise<void> =>
    optimistic(async () => {
      const claim: StoredClaim = { ...common(), shape: CLAIM_SHAPE, subject: claimed };
      try {
        await table.write({ put: { ...key, ...claim }, when: isFree });
      } catch (error) {
        const failure = failedAt(error, 0);
        if (failure !== undefined) await makeWay(failure.item);
        throw error;
      }
    });

  /** Commits the writes together with the receipt. Tries again if only the row of the receipt has made the transaction fail. */
  const transactWithReceipt = (writes: readonly Write[], { id, version }: Written): Promise<void> =>
    optimistic(
      async () => {
        const stored: z.infer<typeof StoredWithEffect> = { ...common(), id, version };
        const receipt = { put: { ...key, ...stored }, when: isFree } satisfies Write;
        try {
          // A transaction costs twice as many write units as a single write. A receipt without other writes is therefore written without a
          // transaction.
          if (writes.length === 0) await table.write(receipt);
          else await table.transact([...writes, receipt]);
        } catch (error) {
          const failure = failedAt(error, writes.length);
          if (failure !== undefined) await makeWay(failure.item);
          throw error;
        }
      },
      ({ failed }) => failed.every(({ index }) => index === writes.length),
    );

  const commit: ApiContext["commit"] = async (writes, _, written) => {
    if (written === undefined) throw new Error("an operation has committed without its record");
    if (subject === undefined) {
      await transactWithReceipt(writes, written);
    } else {
      if (!isClaimed) await writeClaim(subject);
      isClaimed = true;
      await table.transact(writes);
    }
    last = { id: written.id, version: written.version };
  };

  return {
    context: { ...context, commit, operationMark: subject && mark },
    written: () => last,
    check: async () => {
      const item = await table.get(key);
      if (item !== undefined) await requireUnapplied(item);
    },
  };
}

const mismatch = () => new ApiError("idempotency_mismatch", "This opId was used for another operation.");

/** Returns JSON text that does not depend on the order of an object's keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
