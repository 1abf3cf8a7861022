/**
 * Claims: the receipts of operations that create or delete a prospect. A claim is written before the transaction that applies the
 * operation, so it costs one write unit instead of two. It does not show whether the operation was applied. This is shown by the mark of
 * the operation, which the transaction stores in a row that it writes anyway.
 */
import { createHash } from "node:crypto";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ReadContext, Written } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { findClientRecord } from "#shared/prospects/client-records.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

/** The prospect that an operation creates or deletes. The `clientRecordId` of a new prospect is in lower case. */
export type Subject = { readonly clientRecordId: string } | { readonly prospectId: number };

/**
 * The shape number of claims. A release that does not know claims refuses to read them, and the operation gets the outcome `retry`.
 * Otherwise it would report an operation as applied that has only a claim.
 */
export const CLAIM_SHAPE = 2;

export const StoredClaim = z.object({
  type: z.literal("receipt"),
  shape: z.literal(CLAIM_SHAPE),
  fingerprint: z.string(),
  subject: z.union([z.object({ clientRecordId: z.string() }), z.object({ prospectId: Id })]),
  expiresAt: z.int(),
});
export type StoredClaim = z.infer<typeof StoredClaim>;

/** Characters of a mark. Each has 6 bits, so two operations do not get the same mark by chance. */
const MARK_CHARACTERS = 22;

/** Returns the mark of an operation. It is short, because a longer row can cost more. */
export const markOf = (userId: number, opId: string, fingerprint: string): string =>
  createHash("sha256").update(`${userId} ${opId} ${fingerprint}`).digest("base64url").slice(0, MARK_CHARACTERS);

/** The creation or deletion of the prospect that a claim names. */
export interface Effect {
  /** The mark of the operation that has done it. Undefined if a single request has done it. */
  readonly mark: string | undefined;
  readonly written: Written;
}

/**
 * Returns the creation of the claimed prospect, or its deletion by an operation. Returns undefined if there is none, so that the claimed
 * operation may still be applied. This includes a prospect that a bulk job has deleted, because the undo of the job restores it.
 */
export async function effectOf(
  context: Pick<ReadContext, "table">,
  caller: Caller,
  { subject }: Pick<StoredClaim, "subject">,
): Promise<Effect | undefined> {
  if ("clientRecordId" in subject) {
    const made = await findClientRecord(context, caller, subject.clientRecordId);
    return made && { mark: made.createdByOperation, written: { id: made.prospectId, version: 1 } };
  }
  const item = await context.table.get(keys.prospect(caller.companyId, subject.prospectId));
  if (item === undefined) return undefined;
  const { id, deletedByOperation } = storedProspect(item);
  if (deletedByOperation === undefined) return undefined;
  const [mark, version] = deletedByOperation;
  return { mark, written: { id, version } };
}

/** Returns true if the transaction of the claimed operation may still be running in the function that has written the claim. */
export const isRecent = ({ expiresAt }: Pick<StoredClaim, "expiresAt">, nowMs: number): boolean =>
  nowMs < expiresAt * 1_000 - limits.receiptKeptMs + limits.claimHeldMs;
