/** Secrets by the deployment's key service: called when a function is loaded that has the right to it. */
import { openKms } from "#shared/aws/kms.ts";
import { setting } from "#shared/config.ts";
import { provideSecrets } from "#shared/secrets/provider.ts";
import { openSecrets } from "#shared/secrets/secrets.ts";

export const useKeyService = (): void =>
  provideSecrets((table) => openSecrets(table, () => openKms(setting("SECRETS_KEY_ARN"))));
