/** GET /api/addresses: the company's addresses. */

import * as z from "zod/mini";
import { listAddresses } from "#shared/addresses/list.ts";
import { Address, AddressQuery } from "#shared/addresses/schema.ts";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { limits } from "#shared/limits.ts";

export const handler = streamItems(
  {
    summary: "List addresses",
    description: `In order of their ids, at most 500 at once. Where there may be more, a \`Link\` header with \`rel="next"\` says where to go on. A user who sees only own prospects gets the addresses of these, and those that no prospect has; one request looks through ${limits.addressesLookedThrough} addresses of the company, so that an answer with such a header may be short, or empty.`,
    tag: "Addresses",
    allow: "everyone",
    query: AddressQuery,
    status: 200,
    response: z.array(Address),
  },
  async ({ world, caller, query, header }) => {
    const { addresses, after } = await listAddresses(world, caller, query);
    if (after !== undefined) header("Link", `<?after=${after}&limit=${query.limit}>; rel="next"`);
    return addresses;
  },
);
