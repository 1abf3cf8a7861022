/** The identity provider as the directory needs it: every user who is to sign in gets a subject there. */

export interface IdentityProvider {
  /** The provider belongs to somebody else and is not asked: the inviter may name the subject. */
  readonly takesSubjects: boolean;
  /**
   * Every answer about an invitation takes at least so long. An address that belongs to another company is not handed to the
   * provider, and the time of the answer must not tell so.
   */
  readonly answersAfterMs: number;
  /**
   * Makes the user with this e-mail address known and gives the subject that tokens will name. Asked again for the same
   * address, it continues where it was cut off. `known` is the subject that the user had before.
   */
  invite(email: string, known?: string): Promise<{ readonly sub: string }>;
  /** Takes back an invitation that nobody took up. Does nothing for a user who has signed in, or is unknown. */
  withdraw(email: string): Promise<void>;
}
