/** Reminds of keys that end soon, and mails to admins what has happened to keys. A changed row also makes an event. */
import { endOf, type KeyNotice, reminded, ringWrite, StoredKeyRing } from "#shared/auth/key-ring.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import type { SendMail } from "#shared/aws/ses.ts";
import { iso } from "#shared/clock.ts";
import type { AppContext } from "#shared/context.ts";
import { any, below, missing } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ConditionFailed } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { invitationOf } from "#shared/reference/invite.ts";

interface Context extends Pick<AppContext, "table" | "clock"> {
  /** Undefined if the deployment sends no mail. */
  readonly mail: SendMail | undefined;
}

/** The function times out after 50 s. The next invocation, a minute later, handles the other rings. */
const WORK_MS = 30_000;
/** The maximum of SES for one mail. */
const RECIPIENTS = 50;
const DAY_MS = 24 * 3_600_000;

/** Returns the number of rings with a notice. */
export async function sweepKeyNotices(context: Context): Promise<number> {
  const { table, clock } = context;
  const begun = clock.now();
  const now = iso(begun);
  let handled = 0;
  for await (const { pk, sk } of table.query({ pk: keys.keyShard, index: "due", upTo: now })) {
    if (clock.now() - begun > WORK_MS) break;
    const item = await table.get({ pk: String(pk), sk: String(sk) });
    if (item === undefined) continue;
    handled++;
    const ring = StoredKeyRing.parse(item);
    const isSent = await sent(context, ring);
    const after = { rights: ring.rights, keys: ring.keys.map((key) => reminded(key, begun)) };
    // Another change of the ring may come first. The next sweep reads it again.
    await table.transact([ringWrite(isSent ? { ...ring, unsent: [] } : ring, after, now)]).catch((error: unknown) => {
      if (!(error instanceof ConditionFailed)) throw error;
    });
  }
  return handled;
}

/** Returns false if the mail must be sent again. A killed function may have sent it. */
async function sent(context: Context, ring: StoredKeyRing): Promise<boolean> {
  const { unsent = [], companyId, userId } = ring;
  if (unsent.length === 0 || context.mail === undefined) return true;
  const { users } = await loadDictionary(context.table, companyId);
  const to = [...users.values()].filter((user) => isRecipient(user, context.clock.now())).slice(0, RECIPIENTS);
  if (to.length === 0 || !(await isWithinQuota(context, companyId))) return true;
  const account = users.get(userId)?.lastName ?? `${userId}`;
  try {
    await context.mail({
      to: to.map(({ email }) => email),
      subject: "API keys of your company",
      text: [`Service account: ${account}`, ...unsent.map(sentenceOf), CURE].join("\n\n"),
    });
    return true;
  } catch (error) {
    log.warn("mail not sent", errorFields(error));
    return false;
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
  return `${name} has lost the user who answers for it. It ends at ${end}, unless an admin takes it over.`;
}

/** One company must not use up the mails that SES permits to all of them. */
async function isWithinQuota({ table, clock }: Context, companyId: number): Promise<boolean> {
  const today = iso(clock.now()).slice(0, "YYYY-MM-DD".length);
  try {
    await table.write({
      update: keys.quota(companyId, "MAILS", today),
      change: {
        add: { used: 1 },
        set: { type: "quota", expiresAt: Math.ceil((clock.now() + 2 * DAY_MS) / 1_000) },
      },
      when: any(missing("used"), below("used", limits.keyMailsPerDay)),
    });
    return true;
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error;
    return false;
  }
}
