/**
 * The interface for stored secrets. A function that may use the key service provides the implementation when the function is loaded
 * (key-service.ts). The bundles of all other functions contain no KMS client.
 */
import type { Key } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface Secrets {
  /** Encrypts a text for one row of the company. Sealing the company's first secret creates the company's data key. */
  seal(companyId: number, row: Key, text: string): Promise<Uint8Array>;
  /** Decrypts a text. Throws if the bytes were not sealed for this row. */
  open(companyId: number, row: Key, sealed: Uint8Array): Promise<string>;
}

/** The KMS encryption context of data keys. The functions' policies require it (infra/rights.ts). */
export const PURPOSE = "webhook-secrets";

let provider: ((table: Table) => Secrets) | undefined;

export function provideSecrets(provide: (table: Table) => Secrets): void {
  provider = provide;
}

/** Connects to nothing before the first secret. Throws at the first secret if no implementation was provided. */
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
