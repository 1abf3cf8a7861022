/** The interface of an identity provider, which manages users and their token subjects. */
import { randomUUID } from "node:crypto";

export interface IdentityProvider {
  /** True if the inviter may choose the token subject, because another system manages the users. */
  readonly takesSubjects: boolean;
  /**
   * Minimum duration of an invitation request, in milliseconds. If a user of another company already has the e-mail address, the service
   * does not call the provider and could respond sooner. Without a minimum, this shorter time would reveal that the address is in use.
   */
  readonly answersAfterMs: number;
  /**
   * Registers the e-mail address and returns the user's token subject (the `sub` of the user's tokens). A repeated call resumes an
   * interrupted registration. `known` is the token subject that the user had before this invitation.
   */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Withdraws an invitation. Does nothing if the user is unknown or has already signed in. */
  withdraw(email: string): Promise<void>;
}

/**
 * The provider for deployments with an external token issuer, where another system manages the users. It returns the subject `known` or a
 * random one, and sends no mail.
 */
export const directoryOnly: IdentityProvider = {
  takesSubjects: true,
  answersAfterMs: 0,
  invite: async (_, known) => ({ sub: known ?? randomUUID() }),
  withdraw: async () => undefined,
};
