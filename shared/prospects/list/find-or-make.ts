/**
 * Finds the prospect that has a given key, for example its id in another system, or creates it. At most one of several concurrent calls
 * creates it, and the others find it.
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
import { ApiError, ConditionFailed, isNotFound } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { clientRecordInUse, findClientRecords } from "#shared/prospects/client-records.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { keyIn, keyOf } from "#shared/prospects/match-key.ts";
import type { Prospect } from "#shared/prospects/schema.ts";
import { createProspect, updateProspect } from "#shared/prospects/write.ts";
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
        "Finds the prospect that has the same value in this field, among those that the caller sees, or creates it if there is none. E-mail addresses are compared without case. The body must contain the field.",
      example: "sourceId",
    },
    onMatch: {
      description:
        "`update` changes the sent fields of the found prospect, as PATCH does. `skip`, the default, changes nothing.",
      example: "update",
    },
  },
}));

/** The answer that `isFound` recognizes. The response has no such field, because its schema does not contain it. */
const found = (prospect: Prospect): Prospect & { isFound: true } => ({ ...prospect, isFound: true });

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
  if (matchBy === "clientRecordId") return byClientRecord(context, caller, onMatch, input);
  const key = keyIn(matchBy, input[matchBy] ?? "");
  if (key === undefined) throw missingKey(matchBy);
  const own = { by: matchBy, key };
  const change = await claim(context, caller, own);
  const [match, ...others] = await matchesOf(context, caller, own);
  if (match === undefined) {
    const made = await createProspect(context, caller, input);
    return { ...made, writes: [...made.writes, change(made.answer.id)] };
  }
  if (others.length > 0) throw severalMatch(matchBy, [match, ...others]);
  const plan = await changeFound(context, caller, match, onMatch, input);
  // The prospect has got another key since it was found.
  if (onMatch !== "update" && keyOf(matchBy, plan.answer) !== key) throw new ConditionFailed([]);
  return plan;
}

async function byClientRecord(
  context: ApiContext,
  caller: Caller,
  onMatch: FindOrMakeQuery["onMatch"],
  input: NewProspect,
): Promise<Plan<Prospect>> {
  const key = input.clientRecordId?.toLowerCase();
  if (key === undefined) throw missingKey("clientRecordId");
  const id = (await findClientRecords(context, caller, new Set([key]))).get(key);
  if (id === undefined) {
    const made = await createProspect(context, caller, input);
    // A concurrent call may have used the id. The verb is then called again and finds its prospect.
    return { ...made, refused: (failed) => Promise.reject(failed) };
  }
  try {
    return await changeFound(context, caller, { id }, onMatch, input);
  } catch (error) {
    throw isNotFound(error) ? clientRecordInUse() : error;
  }
}

/** Throws `not_found` if the caller does not see the prospect any more. */
async function changeFound(
  context: ApiContext,
  caller: Caller,
  { id }: { readonly id: number },
  onMatch: FindOrMakeQuery["onMatch"],
  { clientRecordId, sourceCreatedAt, ...patch }: NewProspect,
): Promise<Plan<Prospect>> {
  const plan = await updateProspect(context, caller, id, onMatch === "update" ? patch : {});
  return { ...plan, answer: found(plan.answer) };
}

interface Wanted {
  readonly by: Exclude<FindBy, "clientRecordId">;
  /** In normal form. */
  readonly key: string;
}

/** Rows that one read of the index may return. Others than the searched ones are among them, because their notes contain the address. */
const PAGE = 100;

/** Returns the prospects with this key that the caller sees, newest first, and not more than an error shows. */
async function matchesOf(context: ApiContext, caller: Caller, { by, key }: Wanted): Promise<Prospect[]> {
  const filter =
    by === "sourceId"
      ? { sourceId: [key], sourceIds: { has: (stored: string) => keyIn(by, stored) === key } }
      : { search: [{ text: searchable(key, limits.email), digits: [] }] };
  const matches: Prospect[] = [];
  for (let page = 1; ; page++) {
    const { items, total } = await listProspects(context, caller, { ...filter, page, pageSize: PAGE });
    matches.push(...items.filter((item) => keyOf(by, item) === key));
    if (page * PAGE >= total || matches.length >= limits.conflictingIds) return matches.slice(0, limits.conflictingIds);
  }
}

/** The last creation for a key by callers who see the same prospects. DynamoDB's TTL deletes the row. */
export const StoredMatchClaim = z.object({ type: z.literal("matchClaim"), prospectId: Id, expiresAt: z.int() });

/**
 * Call it before the search. The returned write belongs to the transaction that creates the prospect. It fails if another call has created
 * one for this key since, which the search may have missed. Callers who see different prospects have different rows, so that no answer
 * depends on prospects that the caller does not see.
 */
async function claim(
  { table, clock }: ApiContext,
  caller: Caller,
  { by, key }: Wanted,
): Promise<(prospectId: number) => Write> {
  const digest = hash("sha256", `${by} ${key}`, "base64url");
  const row = keys.matchClaim(caller.companyId, visibleAssignee(caller), digest);
  const item = await table.get(row);
  const when = item === undefined ? absent : equals("prospectId", StoredMatchClaim.parse(item).prospectId);
  const expiresAt = Math.ceil((clock.now() + CLAIM_MS) / 1_000);
  return (prospectId) => ({ put: { ...row, type: "matchClaim", prospectId, expiresAt }, when });
}

/** Longer than any request, and the index shows a new prospect at once. */
const CLAIM_MS = 24 * 3_600_000;

function missingKey(field: FindBy): ApiError {
  const message = "is required by matchBy";
  const faults = [{ pointer: `/${field}`, code: "invalid_type", message }];
  return new ApiError("validation_failed", `${field}: ${message}.`, { faults });
}

function severalMatch(field: FindBy, matches: readonly Prospect[]): ApiError {
  const ids = matches.map(({ id }) => id);
  return new ApiError("conflict", `Several prospects have this ${field}.`, { members: { ids } });
}
