/** GET /api/service-accounts: lists the service accounts of the company. */
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { ServiceAccount } from "#shared/reference/service-account-schema.ts";
import { listAccounts } from "#shared/reference/service-accounts.ts";

export const handler = endpoint(
  {
    summary: "List service accounts",
    description: "Deleted ones are not in the list.",
    response: z.array(ServiceAccount),
    allow: "admin",
    scope: "keys:manage",
  },
  ({ context, caller }) => listAccounts(context, caller.companyId),
);
