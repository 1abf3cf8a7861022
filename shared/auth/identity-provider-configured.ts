/** The identity provider of this deployment, made once per warm function: its user pool, where it has one. */

import { directoryOnly } from "#shared/auth/directory-only.ts";
import type { IdentityProvider } from "#shared/auth/identity-provider.ts";
import { userPool } from "#shared/auth/user-pool.ts";
import { setting } from "#shared/config.ts";

let made: IdentityProvider | undefined;

export function identityProvider(): IdentityProvider {
  if (made === undefined) {
    const userPoolId = setting("USER_POOL_ID");
    made = userPoolId === undefined ? directoryOnly : userPool(userPoolId);
  }
  return made;
}
