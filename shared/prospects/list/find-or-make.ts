/**
 * Finds the prospect with a given key, for example its id in another system, or creates it. If users who see the same prospects send the
 * same key at the same time, one request creates the prospect, and the others find it.
 */
import { hash } from "node:crypto";
import * as z from "zod/mini";
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import { searchable } from "#shared/caseless.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, equals, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import { explain } from "#shared/documentation.ts";
import { ApiError, ConditionFailed, failedAt, invalid } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { clientRecordInUse, findClientRecords, prospectInTheWay } from "#shared/prospects/client-records.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { keyIn, keyOf } from "#shared/prospects/match-key.ts";
import { findVisibleProspect } from "#shared/prospects/read.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { createProspect, updateRead } from "#shared/prospects/write.ts";
import { Id } from "#shared/schema.ts";

const FindBy = z.enum(["sourceId", "emailAddress", "clientRecordId"]);
type FindBy = z.infer<typeof FindBy>;

export const FindOrMakeQuery = z
  .object({ matchBy: z.optional(FindBy), onMatch: z.optional(z.enum(["update", "skip"])) })
  .check(
    z.refine(({ matchBy, onMatch }) => matchBy !== undefined || onMatch === undefined, {
      error: "must be sent together with matchBy",
      path: ["onMatch"],
    }),
  );
type FindOrMakeQuery = z.infer<typeof FindOrMakeQuery>;

/* @__PURE__ */ explain([FindOrMakeQuery], () => ({
  fields: {
    matchBy: {
      description:
        "Finds the prospect that has the same value in this field, among those that the caller sees, or creates it if there is none. E-mail addresses are compared without case. By `clientRecordId`, only a prospect that the caller has created is found, and one that the caller does not see any more is 409. The body must contain the field.",
      example: "sourceId",
    },
    onMatch: {
      description:
        "`update` changes the sent fields of the found prospect, as PATCH does, except `clientRecordId` and `sourceCreatedAt`. `skip`, the default, changes nothing.",
      example: "update",
    },
  },
}));

/** Marks a prospect that was found and not created. The schema of the response removes the mark. */
const marked = (prospect: Prospect): Prospect & { isFound: true } => ({ ...prospect, isFound: true });

export const isFound = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "isFound" in answer && answer.isFound === true;

/** Throws `conflict` with the ids of the prospects if several have the key. */
export async function findOrMake(
  context: ApiContext,
  caller: Caller,
  { matchBy, onMatch }: FindOrMakeQuery,
  input: NewProspect,
): Promise<Plan<Prospect>> {
  if (matchBy === undefined) return createProspect(context, caller, input);
  const change = (current: StoredProspect) => changeFound(context, caller, current, onMatch, input);
  if (matchBy === "clientRecordId") return byClientRecord(context, caller, input, change);
  const key = keyIn(matchBy, input[matchBy] ?? "");
  if (key === undefined) throw missingKey(matchBy);
  requireSight(caller, input);
  const own = { by: matchBy, key };
  const claim = await readClaim(context, caller, own);
  const [match, ...others] = await matchesOf(context, caller, own);
  if (match !== undefined && others.length > 0) throw severalMatch(matchBy, [match, ...others]);
  // A Query is not isolated from transactions: the search may miss a new prospect whose claim (the row with its id) is already visible.
  const id = match?.id ?? claim.prospectId;
  if (match === undefined && id !== undefined) await requireRow(context, caller, id);
  const found = id === undefined ? undefined : await findVisibleProspect(context, caller, id);
  if (found !== undefined && keyOf(matchBy, found) === key) return change(found);
  // The prospect was deleted, hidden or changed after the search, so the verb is called again.
  if (match !== undefined) throw new ConditionFailed([]);
  const made = await createProspect(context, caller, input);
  return {
    ...made,
    writes: [...made.writes, claim.write(made.answer.id)],
    // If the write of the claim fails, another call has created a prospect for the key. The verb is called again and finds this prospect.
    refused: (failed) =>
      failedAt(failed, made.writes.length) === undefined ? made.refused?.(failed) : Promise.reject(failed),
  };
}

async function byClientRecord(
  context: ApiContext,
  caller: Caller,
  input: NewProspect,
  change: (current: StoredProspect) => Promise<Plan<Prospect>>,
): Promise<Plan<Prospect>> {
  const key = input.clientRecordId?.toLowerCase();
  if (key === undefined) throw missingKey("clientRecordId");
  const id = (await findClientRecords(context, caller, new Set([key]))).get(key);
  if (id === undefined) {
    const made = await createProspect(context, caller, input);
    // If a concurrent call has created a prospect with this id, the verb is called again and finds this prospect.
    const refused = (failed: ConditionFailed) =>
      prospectInTheWay(failed) === undefined ? made.refused?.(failed) : Promise.reject(failed);
    return { ...made, refused };
  }
  const found = await findVisibleProspect(context, caller, id);
  if (found !== undefined) return change(found);
  await requireRow(context, caller, id);
  throw clientRecordInUse();
}

/** Changes the fields of the request, if `onMatch` says so, but not `clientRecordId` and `sourceCreatedAt`, which never change. */
async function changeFound(
  context: ApiContext,
  caller: Caller,
  current: StoredProspect,
  onMatch: FindOrMakeQuery["onMatch"],
  { clientRecordId, sourceCreatedAt, ...patch }: NewProspect,
): Promise<Plan<Prospect>> {
  const plan = await updateRead(context, caller, current, onMatch === "update" ? patch : {});
  return { ...plan, answer: marked(plan.answer) };
}

/** Throws if the caller would not see the new prospect, because each repetition of the request would then create another one. */
function requireSight(caller: Caller, { assignedToUserId }: NewProspect): void {
  const sight = visibleAssignee(caller);
  if (sight === undefined || assignedToUserId == null || assignedToUserId === sight) return;
  const message = "must be your own id or null, because matchBy finds only prospects that you see";
  const fault = { pointer: "/assignedToUserId", code: "invalid_reference", message };
  throw invalid(`assignedToUserId: ${message}.`, fault);
}

/** Throws ConditionFailed if the prospect has no visible row yet, so that the verb is called again. A deleted prospect keeps its row. */
async function requireRow({ table }: ApiContext, { companyId }: Caller, id: number): Promise<void> {
  if ((await table.get(keys.prospect(companyId, id))) === undefined) throw new ConditionFailed([]);
}

interface Wanted {
  readonly by: Exclude<FindBy, "clientRecordId">;
  /** The normal form of the key (match-key.ts). */
  readonly key: string;
}

/** Page size of the search. A search for an e-mail address also finds longer addresses and notes, so there may be several pages. */
const PAGE = 100;

/** Returns the prospects with this key, newest first, but not more than the error of `severalMatch` shows. */
async function matchesOf(context: ApiContext, caller: Caller, { by, key }: Wanted): Promise<Prospect[]> {
  const filter =
    by === "sourceId"
      ? { sourceId: [key], sourceIds: { has: (stored: string) => keyIn(by, stored) === key } }
      : { search: [{ text: searchable(key, limits.email), digits: [] }] };
  const matches = new Map<number, Prospect>();
  let totalBefore: number | undefined;
  for (let page = 1; ; page++) {
    const { items, total } = await listProspects(context, caller, { ...filter, page, pageSize: PAGE });
    // If the total has changed, a prospect may have moved to a page that was read before, so the verb is called again.
    if (totalBefore !== undefined && total !== totalBefore) throw new ConditionFailed([]);
    totalBefore = total;
    for (const item of items) if (keyOf(by, item) === key) matches.set(item.id, item);
    if (page * PAGE >= total || matches.size >= limits.conflictingIds) break;
  }
  return [...matches.values()].slice(0, limits.conflictingIds);
}

/** The row of the last creation for a key by callers who see the same prospects. DynamoDB's TTL deletes the row. */
export const StoredMatchClaim = z.object({ type: z.literal("matchClaim"), prospectId: Id, expiresAt: z.int() });

interface Claim {
  readonly prospectId: number | undefined;
  /** Fails if another call has created a prospect for this key since the claim was read. */
  readonly write: (prospectId: number) => Write;
}

/** Call it before the search. Each rep has its own claim, and all other users share one, so that no answer depends on hidden prospects. */
async function readClaim({ table, clock }: ApiContext, caller: Caller, { by, key }: Wanted): Promise<Claim> {
  const digest = hash("sha256", `${by} ${key}`, "base64url");
  const row = keys.matchClaim(caller.companyId, visibleAssignee(caller), digest);
  const item = await table.get(row);
  const prospectId = item === undefined ? undefined : StoredMatchClaim.parse(item).prospectId;
  const when = prospectId === undefined ? absent : equals("prospectId", prospectId);
  const expiresAt = Math.ceil((clock.now() + CLAIM_MS) / 1_000);
  return {
    prospectId,
    write: (created) => ({ put: { ...row, type: "matchClaim", prospectId: created, expiresAt }, when }),
  };
}

/** A claim is kept for longer than any request and its repetitions take. */
const CLAIM_MS = 24 * 3_600_000;

function missingKey(field: FindBy): ApiError {
  const message = "is required by matchBy";
  return invalid(`${field}: ${message}.`, { pointer: `/${field}`, code: "invalid_type", message });
}

function severalMatch(field: FindBy, matches: readonly Prospect[]): ApiError {
  const ids = matches.map(({ id }) => id);
  return new ApiError("conflict", `Several prospects have this ${field}.`, { members: { ids } });
}
