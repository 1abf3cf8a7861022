/** The secrets of a webhook as its row holds them: encrypted for that row, with a mask beside them that needs no key. */
import { type Condition, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import type { StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";
import { maskOf } from "#shared/webhooks/subscriptions/secret.ts";

type Row = Pick<StoredWebhook, "companyId" | "id">;
type Previous = NonNullable<StoredWebhook["previousSecret"]>;

const placeOf = ({ companyId, id }: Row) => keys.webhook(companyId, id);

/** Fields of a row with a new secret. */
export async function sealedSecret(
  secrets: Secrets,
  row: Row,
  secretKey: string,
): Promise<Required<Pick<StoredWebhook, "sealedSecret" | "secretMask">>> {
  const sealed = await secrets.seal(row.companyId, placeOf(row), secretKey);
  return { sealedSecret: sealed, secretMask: maskOf(secretKey) };
}

/** The secret of now as the previous one: it moves as it is, or is encrypted where the row is of before encryption. */
export async function asPrevious(
  secrets: Secrets,
  webhook: Row & Pick<StoredWebhook, "sealedSecret" | "secretKey">,
  until: string,
): Promise<Previous> {
  const { sealedSecret: sealed, secretKey } = webhook;
  if (sealed !== undefined) return { sealed, until };
  return { sealed: await secrets.seal(webhook.companyId, placeOf(webhook), plainOf(secretKey)), until };
}

/** The row still has the secret that it was read with. */
export const holdsSecretOf = ({ sealedSecret: sealed, secretKey }: StoredWebhook): Condition =>
  sealed === undefined ? equals("secretKey", secretKey) : equals("sealedSecret", sealed);

export const maskIn = ({ secretMask, secretKey }: StoredWebhook): string => secretMask ?? maskOf(plainOf(secretKey));

export interface OpenedSecrets {
  readonly secretKey: string;
  readonly previousSecret: { readonly secretKey: string; readonly until: string } | undefined;
}

/** As they sign. */
export async function openedSecrets(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<OpenedSecrets> {
  const { companyId, sealedSecret: sealed, secretKey, previousSecret } = webhook;
  const opened = async (own: Uint8Array | undefined, plain: string | undefined): Promise<string> =>
    own === undefined ? plainOf(plain) : secrets.open(companyId, placeOf(webhook), own);
  const previous = previousSecret && {
    secretKey: await opened(previousSecret.sealed, previousSecret.secretKey),
    until: previousSecret.until,
  };
  return { secretKey: await opened(sealed, secretKey), previousSecret: previous };
}

/** A row has its secret in one form or the other. */
function plainOf(secretKey: string | undefined): string {
  if (secretKey === undefined) throw new Error("the row of a webhook has no secret");
  return secretKey;
}
