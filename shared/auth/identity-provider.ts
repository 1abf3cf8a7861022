/** The identity provider: it gives each user the subject that the user's tokens name. */
import { randomUUID } from "node:crypto";

export interface IdentityProvider {
  /** The service does not manage this provider, so the inviter may name the subject. */
  readonly takesSubjects: boolean;
  /**
   * The shortest time of an answer about an invitation. The service skips the provider for an address of another company, and the
   * time of the answer must not reveal that.
   */
  readonly answersAfterMs: number;
  /**
   * Registers the user with this e-mail address and returns the subject of the user's tokens. A repeated call for the same address
   * resumes an interrupted one. `known` is the user's previous subject.
   */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Withdraws an invitation that the user has not accepted. Does nothing for an unknown user or one who has signed in. */
  withdraw(email: string): Promise<void>;
}

/** The provider for an external issuer: the inviter names the subject. Without a name it makes one up, as the local issuer needs. */
export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};
