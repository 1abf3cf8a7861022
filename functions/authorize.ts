/** The authorizer of the API Gateway. It verifies the access token and finds the user of the token's subject in the user directory. */
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";

/**
 * The function caches no caller. API Gateway already caches the answer for 60 s, and a second cache would make outdated rights last
 * longer.
 */
export const handler = authorizer(async (context, authorization) =>
  lookUpCaller(context, await verifiedSubject(authorization)),
);
