/** `Idempotency-Key` for POST (IETF draft): a repeated request gets the stored answer of the first one, and has no second effect. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, transactAny } from "#shared/context.ts";
import { all, any, atMost, equals, missing, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import type { Plan } from "#shared/db/plan.ts";
import type { Table } from "#shared/db/table.ts";
import { ApiError, ConditionFailed, failedAt, TableBusy } from "#shared/errors.ts";
import { assertAnswerFits } from "#shared/http/answer.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

const RELEASE_TRIES = 4;

export const StoredClaim = z.object({
  type: z.literal("idempotency"),
  /** A hash of path, query and body. A request with the same key and another hash is refused. */
  fingerprint: z.string(),
  run: z.string(),
  /** In milliseconds since 1970. After this time, the execution counts as killed, and a repeated request may claim the key. */
  runsUntil: z.number(),
  /** The answer, encrypted with a secret from the idempotency key. Absent until the request has ended. */
  answer: z.optional(z.instanceof(Uint8Array)),
  /** Replaces `answer` if the answer contains a secret. It is encrypted with the company's data key. */
  sealedAnswer: z.optional(z.instanceof(Uint8Array)),
  /** The time in milliseconds since 1970 after which another request may use the key. DynamoDB's TTL deletes the row later. */
  forgottenAt: z.number(),
  expiresAt: z.int(),
});

/** Commits the writes of a plan and its answer in one transaction. Throws `internal` and writes nothing if the answer is too large. */
export type Commit = (plan: Pick<Plan<unknown>, "writes" | "answer">) => Promise<void>;

interface Once {
  readonly value: unknown;
  /** True if an earlier request with the same idempotency key has committed the value. */
  readonly replayed: boolean;
}

/**
 * Returns the stored answer of an earlier success with this key, or that of `work`. `work` must pass its last writes and its answer to
 * `commit`. All repetitions of a request have the same `requestKey`.
 */
export async function once(
  context: Pick<ApiContext, "table" | "clock" | "secrets">,
  caller: Caller,
  request: Request,
  { holdsSecret = false }: Pick<Contract, "holdsSecret">,
  work: (commit: Commit, requestKey?: string) => Promise<unknown>,
): Promise<Once> {
  const given = keyOf(request);
  if (given === undefined) {
    const commit = committing(context.table, async () => []);
    // A request that only reads commits nothing. `commit` would measure its value, which may have large fields that the response omits.
    const value = await work(async (plan) => (plan.writes.length === 0 ? undefined : commit(plan)));
    return { value, replayed: false };
  }
  const route = `${request.method} ${request.resource}`;
  // The API keys of a service account have different scopes, so one key must not get the secret in an answer to another.
  const owner = holdsSecret && caller.key !== undefined ? [caller.key.id] : [];
  const row = keys.idempotency(caller.companyId, caller.userId, digest(route, given, ...owner));
  const secret = Buffer.from(hkdfSync("sha256", given, `${caller.userId}`, route, 32));
  const run = randomUUID();
  const ownClaim = all(equals("run", run), unanswered);
  const commit = committing(context.table, async (answer) => {
    const set = holdsSecret
      ? { sealedAnswer: await context.secrets.seal(caller.companyId, row, answer) }
      : { answer: encrypt(secret, answer) };
    return [{ update: row, change: { set }, when: ownClaim }];
  });
  try {
    const fingerprint = digest(request.path, queryOf(request), request.body);
    const earlier = await claim(context, row, run, fingerprint);
    if (earlier === undefined) {
      return { value: await work(commit, digest(route, given, fingerprint)), replayed: false };
    }
    const { answer, sealed } = earlier;
    const text = sealed ? await context.secrets.open(caller.companyId, row, answer) : decrypt(secret, answer);
    return { value: JSON.parse(text), replayed: true };
  } catch (error) {
    // A commit that is still running requires the claim, so it fails after the claim is deleted.
    await release(context.table, { remove: row, when: ownClaim });
    throw error;
  }
}

const committing =
  (table: Table, stored: (answer: string) => Promise<Write[]>): Commit =>
  async ({ writes, answer }) => {
    // JSON has no undefined.
    const text = JSON.stringify(answer ?? null);
    assertAnswerFits(text);
    const more = await stored(text);
    await transactAny(table, [...writes, ...more]).catch((error: unknown) => {
      const isTakenOver = more.length > 0 && failedAt(error, writes.length) !== undefined;
      throw isTakenOver
        ? new TableBusy("another execution has taken over the idempotency key", { cause: error })
        : error;
    });
  };

/** Deletes the claim on the key. Tries several times, because a claim makes the service refuse repetitions for up to 30 seconds. */
async function release(table: Table, removal: Write): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await table.transact([removal]);
    } catch (error) {
      if (error instanceof ConditionFailed) return;
      if (attempt === RELEASE_TRIES) return log.warn("idempotency key not released", errorFields(error));
    }
  }
}

const unanswered = all(missing("answer"), missing("sealedAnswer"));

/** The stored answer. It is encrypted with the company's data key if `sealed`, otherwise with a secret made from the idempotency key. */
interface EarlierAnswer {
  readonly answer: Uint8Array;
  readonly sealed: boolean;
}

/** Writes a row that claims the idempotency key for this request. Returns the answer instead if an earlier request has stored one. */
async function claim(
  { table, clock }: Pick<ApiContext, "table" | "clock">,
  row: Key,
  run: string,
  fingerprint: string,
): Promise<EarlierAnswer | undefined> {
  const now = clock.now();
  const stored: z.infer<typeof StoredClaim> = {
    type: "idempotency",
    fingerprint,
    run,
    runsUntil: now + limits.idempotentRunMs,
    forgottenAt: now + limits.idempotencyKeptMs,
    expiresAt: Math.ceil((now + limits.idempotencyKeptMs) / 1_000),
  };
  const abandoned = all(unanswered, atMost("runsUntil", now), equals("fingerprint", fingerprint));
  const free = any(missing("pk"), atMost("forgottenAt", now), abandoned);
  try {
    await table.write({ put: { ...row, ...stored }, when: free });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    const standing = StoredClaim.parse(error.failed[0]?.item);
    if (standing.fingerprint !== fingerprint) {
      throw new ApiError("idempotency_mismatch", "This idempotency key was used with another request.");
    }
    const { answer, sealedAnswer } = standing;
    if (sealedAnswer !== undefined) return { answer: sealedAnswer, sealed: true };
    if (answer !== undefined) return { answer, sealed: false };
    throw new ApiError("request_in_progress", "A request with this idempotency key is still running.", {
      headers: { "Retry-After": `${retryAfterSeconds(standing, now)}` },
    });
  }
}

/** Returns the seconds that the earlier execution has already taken, so the client waits longer after each attempt. */
function retryAfterSeconds({ runsUntil }: z.infer<typeof StoredClaim>, now: number): number {
  const leftMs = runsUntil - now;
  const takenMs = limits.idempotentRunMs - leftMs;
  return Math.max(1, Math.ceil(Math.min(takenMs, leftMs) / 1_000));
}

/** The IETF draft requires quotes around the key. A key without quotes is accepted too. Throws `validation_failed` for a malformed key. */
function keyOf(request: Request): string | undefined {
  const values = request.headers.get("idempotency-key");
  if (request.method !== "POST" || values === undefined) return undefined;
  const key = values
    .join(",")
    .trim()
    .replace(/^"(.*)"$/, "$1");
  if (key === "" || key.length > limits.idempotencyKey || !/^[\x20-\x7e]+$/.test(key)) {
    const message = `must have 1 to ${limits.idempotencyKey} printable characters`;
    const faults = [{ parameter: "Idempotency-Key", code: "invalid_format", message }];
    throw new ApiError("validation_failed", `The Idempotency-Key ${message}.`, { faults });
  }
  return key;
}

const digest = (...parts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("base64url");

const queryOf = ({ queryParameters }: Request): string => JSON.stringify([...queryParameters]);

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** An attacker who can read the table and guesses the idempotency key can decrypt the answer. If it has a secret, set `holdsSecret`. */
function encrypt(secret: Buffer, answer: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", secret, nonce);
  // Without compression, the list of faults of a large import could exceed the size of a row (400 KB).
  const sealed = Buffer.concat([cipher.update(zstdCompressSync(answer)), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

function decrypt(secret: Buffer, stored: Uint8Array): string {
  const bytes = Buffer.from(stored);
  const decipher = createDecipheriv("aes-256-gcm", secret, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  return zstdDecompressSync(opened).toString("utf8");
}
