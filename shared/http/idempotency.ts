/**
 * `Idempotency-Key` on a POST (IETF draft): a repeated request has one effect. A row claims the key, one transaction commits the
 * effect and the answer together with that row, and a repetition returns the first answer.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, randomUUID } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import type { Write } from "#shared/db/expression.ts";
import { all, any, atMost, equals, missing } from "#shared/db/expression.ts";
import { type Key, keys } from "#shared/db/keys.ts";
import { ApiError, ConditionFailed } from "#shared/errors.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { Request } from "#shared/http/request.ts";
import { limits } from "#shared/limits.ts";

const RELEASE_TRIES = 4;

const StoredClaim = z.object({
  type: z.literal("idempotency"),
  /** Digest of path, query and body. It detects the same key on another request. */
  fingerprint: z.string(),
  /** The run that holds the claim. */
  run: z.string(),
  /** The run counts as alive until then. Milliseconds since the epoch. */
  runsUntil: z.number(),
  /** The encrypted answer, absent during the run. `sealedAnswer` is the answer that holds a secret. */
  answer: z.optional(z.instanceof(Uint8Array)),
  sealedAnswer: z.optional(z.instanceof(Uint8Array)),
  /** The end of the key's validity. TTL deletes the row some time later. Milliseconds since the epoch. */
  forgottenAt: z.number(),
  expiresAt: z.int(),
});

export interface Idempotent<T> {
  readonly value: T | unknown;
  readonly replayed: boolean;
}

/** Runs `work` once per key. `work` commits its effect through the context that it receives. */
export async function idempotently<T>(
  context: ApiContext,
  caller: Caller,
  request: Request,
  work: (context: ApiContext) => Promise<T>,
  { holdsSecret = false }: Pick<Contract, "holdsSecret"> = {},
): Promise<Idempotent<T>> {
  const given = keyOf(request);
  if (given === undefined) return { value: await work(context), replayed: false };
  const route = `${request.method} ${request.resource}`;
  const row = keys.idempotency(caller.companyId, caller.userId, digest(route, given));
  const secret = Buffer.from(hkdfSync("sha256", given, `${caller.userId}`, route, 32));
  const run = randomUUID();
  const ownClaim = all(equals("run", run), unanswered);
  const answered = async (answer: unknown): Promise<Write> => {
    const set = holdsSecret
      ? { sealedAnswer: await context.secrets.seal(caller.companyId, row, JSON.stringify(answer)) }
      : { answer: encrypt(secret, answer) };
    return { update: row, change: { set }, when: ownClaim };
  };
  let committed = false;
  const commit: ApiContext["commit"] = async (writes, answer) => {
    await context.commit([...writes, await answered(answer)], answer);
    committed = true;
  };
  try {
    const earlier = await claim(context, row, run, digest(request.path, queryOf(request), request.body));
    if (earlier !== undefined) {
      const { answer, sealed } = earlier;
      const value = sealed
        ? JSON.parse(await context.secrets.open(caller.companyId, row, answer))
        : decrypt(secret, answer);
      return { value, replayed: true };
    }
    const value = await work({ ...context, commit });
    if (!committed) await context.table.transact([await answered(value)]);
    return { value, replayed: false };
  } catch (error) {
    // A write still in flight, the claim included, cannot commit after its row is gone.
    await release(context, { remove: row, when: ownClaim });
    throw error;
  }
}

/** Retries more than other writes: a leftover claim makes the client wait until the run counts as dead. */
async function release(context: ApiContext, removal: Write): Promise<void> {
  for (let attempt = 1; attempt <= RELEASE_TRIES; attempt++) {
    try {
      return await context.table.transact([removal]);
    } catch (error) {
      if (error instanceof ConditionFailed) return;
    }
  }
}

const unanswered = all(missing("answer"), missing("sealedAnswer"));

/** The encrypted answer of an earlier run: sealed by the company's data key, or encrypted by a secret of the idempotency key. */
interface EarlierAnswer {
  readonly answer: Uint8Array;
  readonly sealed: boolean;
}

/** Undefined: this run holds the claim. */
async function claim(
  context: ApiContext,
  row: Key,
  run: string,
  fingerprint: string,
): Promise<EarlierAnswer | undefined> {
  const now = context.clock.now();
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
    await context.table.write({ put: { ...row, ...stored }, when: free });
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
    throw new ApiError("conflict", "A request with this idempotency key is still running.", {
      headers: { "Retry-After": `${retryAfterSeconds(standing, now)}` },
    });
  }
}

/**
 * A killed run looks like a running one. So a repetition waits as long as the run has taken so far, and at most until the run counts
 * as dead. A client repeats soon after a short run, and at most five times after a run that died at once.
 */
function retryAfterSeconds({ runsUntil }: z.infer<typeof StoredClaim>, now: number): number {
  const leftMs = runsUntil - now;
  const takenMs = limits.idempotentRunMs - leftMs;
  return Math.max(1, Math.ceil(Math.min(takenMs, leftMs) / 1_000));
}

/** The draft requires quotes around the key. A key without quotes is accepted too. */
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

/**
 * AES-256-GCM with a secret derived from the idempotency key. A reader of the table who guesses the key can derive it too. So such an
 * answer holds no data that the table lacks; a contract marks answers with secrets by `holdsSecret`.
 */
function encrypt(secret: Buffer, answer: unknown): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", secret, nonce);
  // A row holds 400 KB. The errors in an import's answer may exceed that before compression.
  const sealed = Buffer.concat([cipher.update(zstdCompressSync(JSON.stringify(answer))), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

function decrypt(secret: Buffer, stored: Uint8Array): unknown {
  const bytes = Buffer.from(stored);
  const decipher = createDecipheriv("aes-256-gcm", secret, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  return JSON.parse(zstdDecompressSync(opened).toString("utf8"));
}
