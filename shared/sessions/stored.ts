/** The stored row of a console session, with its encrypted tokens, and the look-up of the caller by the session's id. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { subjectOfToken, TokenRefused, unauthenticated } from "#shared/auth/token.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { Bytes, Id } from "#shared/schema.ts";
import { NotSealed, type Purpose, type Secrets } from "#shared/secrets/secrets.ts";
import type { Tokens } from "#shared/sessions/issuer.ts";
import { digestOf } from "#shared/sessions/session-id.ts";

const PURPOSE: Purpose = "console-sessions";

export const StoredSession = z.object({
  type: z.literal("session"),
  companyId: Id,
  userId: Id,
  clientId: z.string(),
  tokens: Bytes,
  /** The expiry of the access token, in milliseconds since 1970. */
  accessUntil: z.int(),
  /** The end of the session, in milliseconds since 1970. */
  endsAt: z.int(),
  /** `endsAt` in seconds since 1970, for DynamoDB's TTL. */
  expiresAt: z.int(),
  /** Until this time, in milliseconds since 1970, one request refreshes the session, and others wait for it. */
  refreshingUntil: z.optional(z.int()),
  /** After a refresh: the digest of the session's new id. This row with the old id is valid for another minute. */
  replacedBy: z.optional(z.string()),
  /** The digest of the id that the session had before the last refresh. */
  replaces: z.optional(z.string()),
});
export type StoredSession = z.infer<typeof StoredSession>;

const Sealed = z.object({ access: z.string(), refresh: z.optional(z.string()) });
type SessionTokens = z.infer<typeof Sealed>;

interface NewSession {
  readonly digest: string;
  readonly caller: Pick<Caller, "companyId" | "userId">;
  readonly clientId: string;
  readonly tokens: Pick<Tokens, "access" | "refresh" | "accessUntil">;
  readonly endsAt: number;
}

/** Makes the row of a session. The tokens are encrypted for this row, and cannot be decrypted in another row. */
export async function sessionRow(
  secrets: Pick<Secrets, "seal">,
  { digest, caller: { companyId, userId }, clientId, tokens, endsAt }: NewSession,
): Promise<StoredSession & keys.Key> {
  const key = keys.session(digest);
  const text = JSON.stringify({ access: tokens.access, refresh: tokens.refresh } satisfies Partial<Tokens>);
  return {
    ...key,
    type: "session",
    companyId,
    userId,
    clientId,
    tokens: await secrets.seal(companyId, key, text, PURPOSE),
    accessUntil: Math.floor(tokens.accessUntil),
    endsAt,
    expiresAt: Math.ceil(endsAt / 1_000),
  };
}

/** Undefined if the session is unknown or has ended. DynamoDB's TTL deletes an ended session later. */
export async function readSession(
  { table, clock }: Pick<ApiContext, "table" | "clock">,
  digest: string,
): Promise<StoredSession | undefined> {
  const item: Item | undefined = await table.get(keys.session(digest));
  if (item === undefined) return undefined;
  const session = StoredSession.parse(item);
  return session.endsAt > clock.now() ? session : undefined;
}

/** Decrypts the tokens. If this fails, throws `unauthenticated`, so that the user signs in again. */
export async function openTokens(
  secrets: Pick<Secrets, "open">,
  digest: string,
  { companyId, tokens }: StoredSession,
): Promise<SessionTokens> {
  const text = await secrets.open(companyId, keys.session(digest), tokens, PURPOSE).catch((error: unknown) => {
    if (error instanceof NotSealed) throw unauthenticated("The session cannot be read.", error);
    throw error;
  });
  return Sealed.parse(JSON.parse(text));
}

/** Returns the user of a session. A refused token is an error that API Gateway does not cache, because a refresh may mend the session. */
export async function callerOfSession(context: ApiContext, sessionId: string): Promise<Caller> {
  const digest = digestOf(sessionId);
  const session = await readSession(context, digest);
  if (session === undefined) throw unauthenticated("The session is unknown or has ended.");
  const { access } = await openTokens(context.secrets, digest, session);
  const sub = await subjectOfToken(access, [session.clientId]).catch((error: unknown) => {
    throw error instanceof TokenRefused ? unauthenticated(`The token of the session: ${error.reason}.`) : error;
  });
  return assertOwner(session, await lookUpCaller(context, sub));
}

/** Throws `unauthenticated` unless `caller`, the present user with the token's subject, is the user who began the session. */
export function assertOwner({ companyId, userId }: StoredSession, caller: Caller): Caller {
  if (caller.companyId !== companyId || caller.userId !== userId) {
    throw unauthenticated("The session belongs to another user.");
  }
  return caller;
}
