/**
 * The interface for encrypting (sealing) and decrypting (opening) secrets. Only functions that need secrets load the implementation
 * (key-service.ts), so the bundles of all other functions contain no KMS client.
 */
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** The bytes are damaged, or were encrypted with another data key or for another row. */
export class NotSealed extends Error {
  override readonly name = "NotSealed";
}

export interface Secrets {
  /**
   * Encrypts a text for one row of the company. The default purpose is `webhook-secrets`. If the company has no data key for the purpose,
   * `seal` creates one.
   */
  seal(companyId: number, row: Key, text: string, purpose?: Purpose): Promise<Uint8Array>;
  /** Decrypts a text. Throws NotSealed if the bytes were not sealed for this row and purpose. */
  open(companyId: number, row: Key, sealed: Uint8Array, purpose?: Purpose): Promise<string>;
}

/**
 * The values of `purpose` in the KMS encryption context. Each purpose has separate data keys. The IAM policies of the functions and the
 * policy of the KMS key require the purpose (infra/stack/rights.ts), so a function that signs webhooks can decrypt no session.
 */
export type Purpose = "webhook-secrets" | "console-sessions" | "sync-cursors";

let provider: ((table: Table) => Secrets) | undefined;

export function provideSecrets(provide: (table: Table) => Secrets): void {
  provider = provide;
}

/** Returns an object with `seal` and `open`. Both throw if the bundle of this Lambda function does not contain the implementation. */
export function secretsOn(table: Table): Secrets {
  let secrets: Secrets | undefined;
  const opened = async (): Promise<Secrets> => {
    if (provider === undefined) throw new Error("this function may not use secrets");
    secrets ??= provider(table);
    return secrets;
  };
  return {
    seal: async (...args) => (await opened()).seal(...args),
    open: async (...args) => (await opened()).open(...args),
  };
}
