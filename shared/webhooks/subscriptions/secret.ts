/** The secrets of a webhook in its row: encrypted for that row, each with a mask that can be read without a key. */
import { type Condition, equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { STANDARD_PREFIX, type StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

type Row = Pick<StoredWebhook, "companyId" | "id">;
type Previous = NonNullable<StoredWebhook["previousSecret"]>;

const keyOf = ({ companyId, id }: Row) => keys.webhook(companyId, id);

const SHOWN = 4;

/** The secret's last characters, by which people tell secrets apart: four, and never more than a quarter of the secret part. */
export function maskOf(secret: string): string {
  const characters = [...(secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret)];
  const shown = Math.min(SHOWN, Math.floor(characters.length / 4));
  return `••••${characters.slice(characters.length - shown).join("")}`;
}

export const storedMask = ({ secretMask, secretKey }: StoredWebhook): string => secretMask ?? maskOf(plain(secretKey));

/** The fields of a row with a new secret. */
export async function sealedSecret(
  secrets: Secrets,
  row: Row,
  secretKey: string,
): Promise<Required<Pick<StoredWebhook, "sealedSecret" | "secretMask">>> {
  const sealed = await secrets.seal(row.companyId, keyOf(row), secretKey);
  return { sealedSecret: sealed, secretMask: maskOf(secretKey) };
}

/** The current secret in the form of the previous one. Encrypts it if the row was written before encryption. */
export async function asPreviousSecret(
  secrets: Secrets,
  webhook: Row & Pick<StoredWebhook, "sealedSecret" | "secretKey">,
  until: string,
): Promise<Previous> {
  const { sealedSecret: sealed, secretKey } = webhook;
  if (sealed !== undefined) return { sealed, until };
  return { sealed: await secrets.seal(webhook.companyId, keyOf(webhook), plain(secretKey)), until };
}

/** Holds while the row has the secret it was read with. */
export const hasSecretOf = ({ sealedSecret: sealed, secretKey }: StoredWebhook): Condition =>
  sealed === undefined ? equals("secretKey", secretKey) : equals("sealedSecret", sealed);

/** The decrypted secrets that sign deliveries. */
export interface OpenedSecrets {
  readonly secretKey: string;
  readonly previousSecret: { readonly secretKey: string; readonly until: string } | undefined;
}

export async function openedSecrets(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<OpenedSecrets> {
  const { companyId, sealedSecret: sealed, secretKey, previousSecret } = webhook;
  const opened = async (own: Uint8Array | undefined, plainText: string | undefined): Promise<string> =>
    own === undefined ? plain(plainText) : secrets.open(companyId, keyOf(webhook), own);
  const previous = previousSecret && {
    secretKey: await opened(previousSecret.sealed, previousSecret.secretKey),
    until: previousSecret.until,
  };
  return { secretKey: await opened(sealed, secretKey), previousSecret: previous };
}

/** A row has its secret encrypted or, from versions before encryption, plain. */
function plain(secretKey: string | undefined): string {
  if (secretKey === undefined) throw new Error("the row of a webhook has no secret");
  return secretKey;
}
