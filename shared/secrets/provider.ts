/**
 * Where the secrets of this process come from. A function that may use the key service says so when it is loaded; the bundles of all
 * others, which have no right to it, hold nothing of its client.
 */
import type { Table } from "#shared/db/table.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";

let provider: ((table: Table) => Secrets) | undefined;

export function provideSecrets(provide: (table: Table) => Secrets): void {
  provider = provide;
}

/** Nothing is opened before the first secret. Throws then where nobody has said how. */
export function secretsOn(table: Table): Secrets {
  let made: Secrets | undefined;
  const opened = async (): Promise<Secrets> => {
    if (provider === undefined) throw new Error("this function has no right to secrets");
    made ??= provider(table);
    return made;
  };
  return {
    seal: async (...place) => (await opened()).seal(...place),
    open: async (...place) => (await opened()).open(...place),
  };
}
