/** Encrypts the secrets of webhooks whose rows are of before encryption: each by a write of its own, so that it can be cut off and repeated. */
import { all, present } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Table } from "#shared/db/table.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { asPrevious, holdsSecretOf, sealedSecret } from "#shared/webhooks/subscriptions/sealed-secret.ts";
import { readWebhooks } from "#shared/webhooks/subscriptions/webhooks.ts";

export interface Encrypted {
  /** Webhooks of the company, and how many of them were encrypted now. */
  readonly webhooks: number;
  readonly encrypted: number;
}

export async function encryptSecrets(table: Table, secrets: Secrets, companyId: number): Promise<Encrypted> {
  const webhooks = await readWebhooks(table, companyId);
  let encrypted = 0;
  for (const { webhook } of webhooks) if (await encryptOne(table, secrets, webhook)) encrypted++;
  return { webhooks: webhooks.length, encrypted };
}

const isPlain = ({ secretKey, previousSecret }: StoredWebhook): boolean =>
  secretKey !== undefined || previousSecret?.secretKey !== undefined;

/** Whoever rotates the secret meanwhile comes first. False: there was nothing to do. */
function encryptOne(table: Table, secrets: Secrets, { companyId, id }: StoredWebhook): Promise<boolean> {
  const key = keys.webhook(companyId, id);
  return optimistic(async () => {
    const item = await table.get(key);
    const webhook = item === undefined ? undefined : StoredWebhook.parse(item);
    if (webhook === undefined || !isPlain(webhook)) return false;
    const { secretKey, previousSecret: previous } = webhook;
    const set = {
      ...(secretKey !== undefined && (await sealedSecret(secrets, webhook, secretKey))),
      ...(previous?.secretKey !== undefined && {
        previousSecret: await asPrevious(secrets, { companyId, id, secretKey: previous.secretKey }, previous.until),
      }),
    };
    const when = all(present, holdsSecretOf(webhook));
    await table.write({ update: key, change: { set, remove: ["secretKey"] }, when });
    return true;
  });
}
