/** Begins, refreshes and ends sessions of the console. */
import { setTimeout as wait } from "node:timers/promises";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, all, any, below, missing, present } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, ConditionFailed, conditionHolds } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { type ConsoleClient, refreshTokens, SignInRefused, type Tokens } from "#shared/sessions/issuer.ts";
import { digestOf, newSessionId } from "#shared/sessions/session-id.ts";
import { assertOwner, openTokens, readSession, type StoredSession, sessionRow } from "#shared/sessions/stored.ts";

/** The session gets a new id, never one from the browser, to prevent session fixation. `previous` is the digest of the old session's id. */
export async function beginSession(
  context: ApiContext,
  clientId: string,
  tokens: Tokens,
  previous: string | undefined,
): Promise<{ readonly id: string; readonly caller: Caller }> {
  const { table, clock, secrets } = context;
  const caller = await lookUpCaller(context, tokens.sub);
  const id = newSessionId();
  const endsAt = clock.now() + limits.sessionMs;
  const row = await sessionRow(secrets, { digest: digestOf(id), caller, clientId, tokens, endsAt });
  await table.transact([
    { put: { ...row }, when: absent },
    ...(previous === undefined ? [] : [{ remove: keys.session(previous) }]),
  ]);
  return { id, caller };
}

/** Removes the session's rows: those of this id, of its predecessor and of its successor. Does nothing if the session is unknown. */
export async function endSession(context: Pick<ApiContext, "table" | "clock">, sessionId: string): Promise<void> {
  const digest = digestOf(sessionId);
  const session = await readSession(context, digest);
  if (session !== undefined) await remove(context, [digest, session.replacedBy, session.replaces]);
}

async function remove({ table }: Pick<ApiContext, "table">, digests: readonly (string | undefined)[]): Promise<void> {
  await table.transact(digests.flatMap((digest) => (digest === undefined ? [] : [{ remove: keys.session(digest) }])));
}

/** `id` is undefined if the session keeps its id, or if another request has refreshed the session. */
type Refreshed = { readonly id: string | undefined };

/** Other refreshes of the session wait for this one. Throws `unauthenticated` if the user must sign in again. */
export async function refreshSession(
  context: ApiContext,
  client: ConsoleClient,
  sessionId: string,
): Promise<Refreshed> {
  const digest = digestOf(sessionId);
  const session = await readSession(context, digest);
  if (session === undefined) throw signInAgain();
  if (session.replacedBy !== undefined) return { id: undefined };
  if (session.accessUntil > context.clock.now() + limits.refreshBeforeMs) return { id: undefined };
  if (!(await claimRefresh(context, digest))) return awaitRefresh(context, digest);
  try {
    return { id: await replaceSession(context, client, digest, session) };
  } catch (error) {
    if (error instanceof SignInRefused || (error instanceof ApiError && error.code === "unauthenticated")) {
      await remove(context, [digest]);
      throw signInAgain(error);
    }
    // A sign-out during the refresh has removed the row.
    if (error instanceof ConditionFailed) throw signInAgain(error);
    await releaseRefresh(context, digest);
    throw error;
  }
}

const signInAgain = (cause?: unknown): ApiError =>
  new ApiError("unauthenticated", "The session has ended. Sign in again.", { cause });

/** An issuer that rotates refresh tokens accepts each only once, so only one request may refresh the session. */
function claimRefresh({ table, clock }: ApiContext, digest: string): Promise<boolean> {
  const now = clock.now();
  const isFree = any(missing("refreshingUntil"), below("refreshingUntil", now));
  return conditionHolds(
    table.write({
      update: keys.session(digest),
      change: { set: { refreshingUntil: now + limits.refreshMs } },
      when: all(present, missing("replacedBy"), isFree),
    }),
  );
}

/** Lets other requests refresh the session at once. Does nothing if a sign-out has removed the row. */
const releaseRefresh = ({ table }: ApiContext, digest: string): Promise<boolean> =>
  conditionHolds(table.write({ update: keys.session(digest), change: { remove: ["refreshingUntil"] }, when: present }));

const POLL_MS = 150;
const POLLS = 40;

async function awaitRefresh(context: ApiContext, digest: string): Promise<Refreshed> {
  for (let poll = 0; poll < POLLS; poll++) {
    await wait(POLL_MS);
    const session = await readSession(context, digest);
    if (session === undefined) throw signInAgain();
    if (session.replacedBy !== undefined) return { id: undefined };
    if (session.refreshingUntil === undefined) break;
  }
  throw new ApiError("unavailable", "Another request could not refresh the session.", { showsDetail: true });
}

async function replaceSession(
  context: ApiContext,
  client: ConsoleClient,
  digest: string,
  session: StoredSession,
): Promise<string> {
  const { table, clock, secrets } = context;
  const { refresh } = await openTokens(secrets, digest, session);
  if (refresh === undefined) throw new SignInRefused("the issuer has given no refresh token");
  const tokens = await refreshTokens(client, refresh);
  const caller = assertOwner(session, await lookUpCaller(context, tokens.sub));
  const id = newSessionId();
  const { clientId } = client;
  const { endsAt } = session;
  const overlapEndsAt = Math.min(endsAt, clock.now() + limits.sessionOverlapMs);
  const old = { digest, caller, clientId, tokens: { ...tokens, refresh: undefined }, endsAt: overlapEndsAt };
  const next = { digest: digestOf(id), caller, clientId, tokens, endsAt };
  await table.transact([
    { put: { ...(await sessionRow(secrets, next)), replaces: digest }, when: absent },
    { put: { ...(await sessionRow(secrets, old)), replacedBy: next.digest }, when: present },
  ]);
  return id;
}
