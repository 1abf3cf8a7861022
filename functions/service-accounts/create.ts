/** POST /api/service-accounts: creates a service account. */
import { command } from "#shared/http/endpoint.ts";
import * as limits from "#shared/limits.ts";
import { NewServiceAccount, ServiceAccount } from "#shared/reference/service-account-schema.ts";
import { createAccount } from "#shared/reference/service-accounts.ts";

export const handler = command(
  {
    summary: "Create a service account",
    description: `A service account is a user for a program. It cannot sign in, and its keys are its tokens. Records that the program writes show it as their author, with the type \`service\`. A company may have at most ${limits.serviceAccounts}. Only owners can create accounts with the role owner.`,
    body: NewServiceAccount,
    status: 201,
    response: ServiceAccount,
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller, body }) => createAccount(context, caller, body),
);
