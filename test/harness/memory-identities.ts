/** An identity provider for tests. It has its users in memory. */
import { randomUUID } from "node:crypto";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";

/**
 * A repeated invitation of the same address gets the same subject, until the invitation is withdrawn. Each invitation adds a mail to
 * `mails`.
 */
export function memoryIdentities() {
  /** The subject (the user's id at the provider) of each invited e-mail address. */
  const subjects = new Map<string, string>();
  const mails: string[] = [];
  const provider: IdentityProvider = {
    takesSubjects: false,
    answersAfterMs: 0,
    invite: async (email) => {
      const sub = subjects.get(email) ?? randomUUID();
      subjects.set(email, sub);
      mails.push(email);
      return { sub };
    },
    withdraw: async (email) => {
      subjects.delete(email);
    },
  };
  return { ...provider, subjects, mails };
}
