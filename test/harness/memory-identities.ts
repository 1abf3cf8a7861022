/** An identity provider for tests, which keeps its users in memory. */
import { randomUUID } from "node:crypto";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";

interface MemoryIdentities extends IdentityProvider {
  /** The subject (id of the user) of each invited e-mail address. */
  readonly subjects: Map<string, string>;
  /** The addresses that have got a mail. */
  readonly mails: string[];
}

/** An e-mail address keeps its subject until its invitation is withdrawn. Each invitation sends a mail. */
export function memoryIdentities(): MemoryIdentities {
  const subjects = new Map<string, string>();
  const mails: string[] = [];
  return {
    subjects,
    mails,
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
}
