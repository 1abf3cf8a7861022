/** For issuers that keep no list of users and sign tokens for everyone in the directory: the directory names the subject. */
import { randomUUID } from "node:crypto";
import type { IdentityProvider } from "#shared/identity/provider.ts";

export const directoryOnly: IdentityProvider = { invite: async () => ({ sub: randomUUID() }) };
