/** The interface of an identity provider. The provider gives each user the subject that the user's tokens name. */
import { randomUUID } from "node:crypto";

export interface IdentityProvider {
  /** Whether the inviter may name the subject. True if the service does not manage the provider. */
  readonly takesSubjects: boolean;
  /**
   * The shortest time in which an answer to an invitation is sent. The service does not call the provider for an e-mail address of another
   * company, and the duration of the answer must not reveal that.
   */
  readonly answersAfterMs: number;
  /**
   * Registers the user with this e-mail address and returns the subject of the user's tokens. A repeated call for the same address resumes
   * an interrupted registration. `known` is the user's previous subject.
   */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Withdraws an invitation that the user has not accepted. Does nothing if the user is unknown or has signed in. */
  withdraw(email: string): Promise<void>;
}

/**
 * The provider for an external issuer, where the inviter names the subject. If the inviter names none, this provider makes one up, because
 * the local issuer needs a subject.
 */
export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};
