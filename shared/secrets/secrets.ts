/**
 * The interface for encrypting (sealing) and decrypting (opening) secrets. Functions without secrets do not load the implementation, so
 * their bundles contain no KMS client.
 */
import type { DataKeyPurpose, Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** The bytes are damaged, or were encrypted with another data key or for another row, or the company has no data key. */
export class NotSealed extends Error {
  override readonly name = "NotSealed";
}

export interface Secrets {
  /** Encrypts a text for one row of the company. Creates the data key for the purpose if there is none. */
  seal(companyId: number, row: Key, text: string, purpose?: Purpose): Promise<Uint8Array>;
  /** Throws NotSealed if the bytes were not sealed for this row and purpose. */
  open(companyId: number, row: Key, sealed: Uint8Array, purpose?: Purpose): Promise<string>;
}

/** The purpose is part of the KMS encryption context: a function that signs webhooks can decrypt no session (infra/stack/rights.ts). */
export type Purpose = DataKeyPurpose;

let provider: ((table: Table) => Secrets) | undefined;

export function provideSecrets(provide: (table: Table) => Secrets): void {
  provider = provide;
}

/** The returned functions throw if the bundle of this Lambda function does not contain the implementation. */
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
