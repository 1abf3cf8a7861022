/** The authorizer of API Gateway. It verifies the access token and finds the user in the user directory by the token's subject. */
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";

/** Callers are not cached here. API Gateway already caches the result for 60 s, and a second cache would let revoked rights work longer. */
export const handler = authorizer(async (context, authorization) =>
  lookUpCaller(context, await verifiedSubject(authorization)),
);
