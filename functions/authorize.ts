/** The authorizer of API Gateway. It verifies the access token and looks the token's subject up in the user directory. */
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";

/** Do not cache callers here. API Gateway already caches the answer for 60 s, and a second cache would let revoked rights work longer. */
export const handler = authorizer(async (context, authorization) =>
  lookUpCaller(context, await verifiedSubject(authorization)),
);
