/** Makes reminders for API keys that end soon, and mails all notices about keys to admins. */
import { endOf, type KeyNotice, reminded, ringWrite, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { SendMail } from "#shared/aws/ses.ts";
import { DAY_MS, iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { invitationOf, takesFromQuota } from "#shared/reference/invite.ts";

interface Context extends Pick<AppContext, "table" | "clock"> {
  /** Undefined if the deployment sends no mail. */
  readonly mail: SendMail | undefined;
}

/** A sweep begins no key ring after this time, because the function times out after 50 s. The next sweep handles the others. */
const WORK_MS = 30_000;
/** Maximum number of admins who get a mail. `limits.keyMailsPerDay` mails are then at most 200 copies a day, as many as invitations. */
const RECIPIENTS = 20;
const AGAIN_MS = 3_600_000;

/** Handles all due key rings, and returns their number. If some fail, throws the error of the first one after it has handled the others. */
export async function sweepKeyNotices(context: Context): Promise<number> {
  const { table, clock } = context;
  const begun = clock.now();
  const errors: unknown[] = [];
  let handled = 0;
  for await (const { pk, sk } of table.query({ pk: keys.keyShard, index: "due", upTo: iso(begun) })) {
    if (clock.now() - begun > WORK_MS) break;
    handled++;
    await sweepRing(context, { pk: String(pk), sk: String(sk) }, begun).catch((error: unknown) => {
      // If another request has changed the ring meanwhile, the next sweep handles it.
      if (!(error instanceof ConditionFailed)) errors.push(error);
    });
  }
  if (errors.length > 0) throw errors[0];
  return handled;
}

async function sweepRing(context: Context, key: keys.Key, nowMs: number): Promise<void> {
  const item = await context.table.get(key);
  if (item === undefined) return;
  const ring = StoredKeyRing.parse(item);
  const after = { rights: ring.rights, keys: ring.keys.map((one) => reminded(one, nowMs)) };
  const mailAt = await mailed(context, ring, nowMs);
  const before = mailAt === undefined ? { ...ring, unsent: [] } : ring;
  await context.table.transact([ringWrite(before, after, iso(nowMs), mailAt)]);
}

/** Mails a ring's notices. Returns when to try again, in milliseconds since 1970, if any are left. A killed function may mail one twice. */
async function mailed(context: Context, ring: StoredKeyRing, nowMs: number): Promise<number | undefined> {
  const { unsent = [], companyId, userId } = ring;
  if (unsent.length === 0 || context.mail === undefined) return undefined;
  // Each company has a daily maximum of mails, because SES has one limit for all companies. A mail that fails counts too.
  const mayMail = await takesFromQuota(context.table, companyId, "MAILS", limits.keyMailsPerDay, nowMs);
  if (!mayMail) return (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS;
  const { users } = await loadDictionary(context.table, companyId);
  const to = [...users.values()].filter((user) => isRecipient(user, nowMs)).slice(0, RECIPIENTS);
  const account = users.get(userId)?.lastName ?? `${userId}`;
  try {
    await context.mail({
      to: to.map(({ email }) => email),
      subject: "API keys of your company",
      text: [`Service account: ${account}`, ...unsent.map(sentenceOf), CURE].join("\n\n"),
    });
    return undefined;
  } catch (error) {
    log.warn("mail not sent", errorFields(error));
    return nowMs + AGAIN_MS;
  }
}

const isRecipient = (user: StoredUser, nowMs: number): boolean =>
  user.isActive && user.role !== "sales" && user.isService !== true && invitationOf(user, nowMs) === "accepted";

const CURE = "Admins and owners create, rotate, take over and revoke keys on the page Service accounts of the console.";

function sentenceOf({ what, key }: KeyNotice): string {
  const name = `The key "${key.name}" (pck_${key.id}_…${key.last4})`;
  const end = iso(endOf(key));
  if (what === "revoked") return `${name} was revoked.`;
  if (what === "expiring") return `${name} ends at ${end}. Rotate it before.`;
  return `${name} ends at ${end}: a user who is responsible for it was disabled or got a lower role. An admin can take it over.`;
}
