/** The gateway's authorizer: verifies the access token and looks its subject up in the user directory. */
import { authorizer } from "#shared/auth/authorizer.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";

/** Keeps no caller: the gateway keeps its answer for 60 s, and a second cache would add to that. */
export const handler = authorizer(async (context, authorization) =>
  lookUpCaller(context, await verifiedSubject(authorization)),
);
