/** The identity provider as the directory needs it: whoever is to sign in gets a subject there. */

export interface IdentityProvider {
  /** Whoever invites a user may name the subject, because the provider is somebody else's and is not asked. */
  readonly takesSubjects: boolean;
  /**
   * Makes the user with this e-mail address known and gives the subject that tokens will name. Asked again for the same
   * address, it goes on where it was cut off.
   */
  invite(email: string): Promise<{ readonly sub: string }>;
}
