/**
 * For issuers that are not the deployment's own: the inviter names the subject. Without one the directory makes it up,
 * which is enough for an issuer that signs tokens for everyone in the directory, as the local one does.
 */
import { randomUUID } from "node:crypto";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";

export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};
