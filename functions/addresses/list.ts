/** GET /api/addresses: the company's addresses. */

import * as z from "zod/mini";
import { listAddresses } from "#shared/addresses/addresses.ts";
import { Address, AddressQuery } from "#shared/addresses/schema.ts";
import { streamItems } from "#shared/http/stream-endpoint.ts";

export const handler = streamItems(
  {
    summary: "List addresses",
    description:
      "In order of their ids, at most 500 at once. An answer of `limit` addresses may have more behind it: ask again with its last id as `after`.",
    tag: "Addresses",
    allow: "everyone",
    query: AddressQuery,
    status: 200,
    response: z.array(Address),
  },
  ({ world, caller, query }) => listAddresses(world, caller.companyId, query),
);
