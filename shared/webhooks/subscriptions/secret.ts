/** The secrets in a webhook's row. Each is encrypted, and can be decrypted only together with the key of this row. */
import { randomBytes, randomUUID } from "node:crypto";
import { type Condition, equals } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { STANDARD_PREFIX, type StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

type Row = Pick<StoredWebhook, "companyId" | "id">;
type Previous = NonNullable<StoredWebhook["previousSecret"]>;

const keyOf = ({ companyId, id }: Row) => keys.webhook(companyId, id);

const SHOWN = 4;

/** Returns the last characters of a secret, at most four and at most a quarter of it. */
export function maskOf(secret: string): string {
  const characters = [...(secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret)];
  const shown = Math.min(SHOWN, Math.floor(characters.length / 4));
  return `••••${characters.slice(characters.length - shown).join("")}`;
}

export const storedMask = ({ secretMask, secretKey }: StoredWebhook): string => secretMask ?? maskOf(plain(secretKey));

/** Standard Webhooks requires 24 to 64. */
const STANDARD_BYTES = 24;

export const newSecret = (form: "uuid" | "standard"): string =>
  form === "uuid" ? randomUUID() : `${STANDARD_PREFIX}${randomBytes(STANDARD_BYTES).toString("base64")}`;

/** Returns a random secret in the format of the current secret, because its receiver may support only this format. */
export async function newSecretLike(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<string> {
  const current = await opened(secrets, webhook, webhook.sealedSecret, webhook.secretKey);
  return newSecret(current.startsWith(STANDARD_PREFIX) ? "standard" : "uuid");
}

export async function sealedSecret(
  secrets: Secrets,
  row: Row,
  secretKey: string,
): Promise<Required<Pick<StoredWebhook, "sealedSecret" | "secretMask">>> {
  const sealed = await secrets.seal(row.companyId, keyOf(row), secretKey);
  return { sealedSecret: sealed, secretMask: maskOf(secretKey) };
}

/**
 * Returns the field `previousSecret` with the current secret, which is valid until `until`. If an old version of the service has stored the
 * current secret unencrypted, it is encrypted first.
 */
export async function asPreviousSecret(
  secrets: Secrets,
  webhook: Row & Pick<StoredWebhook, "sealedSecret" | "secretKey">,
  until: string,
): Promise<Previous> {
  const { sealedSecret: sealed, secretKey } = webhook;
  if (sealed !== undefined) return { sealed, until };
  return { sealed: await secrets.seal(webhook.companyId, keyOf(webhook), plain(secretKey)), until };
}

export const hasSecretOf = ({ sealedSecret: sealed, secretKey }: StoredWebhook): Condition =>
  sealed === undefined ? equals("secretKey", secretKey) : equals("sealedSecret", sealed);

export interface OpenedSecrets {
  readonly secretKey: string;
  readonly previousSecret: { readonly secretKey: string; readonly until: string } | undefined;
}

export async function openedSecrets(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<OpenedSecrets> {
  const { sealedSecret: sealed, secretKey, previousSecret } = webhook;
  const previous = previousSecret && {
    secretKey: await opened(secrets, webhook, previousSecret.sealed, previousSecret.secretKey),
    until: previousSecret.until,
  };
  return { secretKey: await opened(secrets, webhook, sealed, secretKey), previousSecret: previous };
}

const opened = async (
  secrets: Pick<Secrets, "open">,
  row: Row,
  sealed: Uint8Array | undefined,
  plainText: string | undefined,
): Promise<string> => (sealed === undefined ? plain(plainText) : secrets.open(row.companyId, keyOf(row), sealed));

function plain(secretKey: string | undefined): string {
  if (secretKey === undefined) throw new Error("the row of a webhook has no secret");
  return secretKey;
}
