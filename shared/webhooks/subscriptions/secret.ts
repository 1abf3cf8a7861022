/** The secrets in a webhook's row. Each is encrypted for this row, so a copy in another row cannot be decrypted. */
import { randomBytes, randomUUID } from "node:crypto";
import * as keys from "#shared/db/keys.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { STANDARD_PREFIX, type StoredWebhook } from "#shared/webhooks/subscriptions/schema.ts";

type Row = Pick<StoredWebhook, "companyId" | "id">;

const keyOf = ({ companyId, id }: Row) => keys.webhook(companyId, id);

const SHOWN = 4;

/** Returns the last characters of a secret, at most four and at most a quarter of it. */
export function maskOf(secret: string): string {
  const characters = [...(secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret)];
  const shown = Math.min(SHOWN, Math.floor(characters.length / 4));
  return `••••${characters.slice(characters.length - shown).join("")}`;
}

/** Bytes of the key in a new secret of Standard Webhooks, which requires 24 to 64. */
const STANDARD_BYTES = 24;

export const newSecret = (form: "uuid" | "standard"): string =>
  form === "uuid" ? randomUUID() : `${STANDARD_PREFIX}${randomBytes(STANDARD_BYTES).toString("base64")}`;

/** Returns a random secret in the format of the current secret, because its receiver may support only this format. */
export async function newSecretLike(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<string> {
  const current = await secrets.open(webhook.companyId, keyOf(webhook), webhook.sealedSecret);
  return newSecret(current.startsWith(STANDARD_PREFIX) ? "standard" : "uuid");
}

export async function sealedSecret(
  secrets: Secrets,
  row: Row,
  secretKey: string,
): Promise<Pick<StoredWebhook, "sealedSecret" | "secretMask">> {
  const sealed = await secrets.seal(row.companyId, keyOf(row), secretKey);
  return { sealedSecret: sealed, secretMask: maskOf(secretKey) };
}

/** The current secret and, until `until`, the previous one. */
export interface OpenedSecrets {
  readonly secretKey: string;
  readonly previousSecret?: { readonly secretKey: string; readonly until: string } | undefined;
}

export async function openedSecrets(secrets: Pick<Secrets, "open">, webhook: StoredWebhook): Promise<OpenedSecrets> {
  const open = (sealed: Uint8Array) => secrets.open(webhook.companyId, keyOf(webhook), sealed);
  const { sealedSecret, previousSecret } = webhook;
  const previous = previousSecret && { secretKey: await open(previousSecret.sealed), until: previousSecret.until };
  return { secretKey: await open(sealedSecret), previousSecret: previous };
}
