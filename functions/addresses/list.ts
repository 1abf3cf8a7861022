/** GET /api/addresses: the company's addresses. */

import * as z from "zod/mini";
import { streamItems } from "#shared/http/stream-endpoint.ts";
import { limits } from "#shared/limits.ts";
import { Address, AddressQuery } from "#shared/prospects/address.ts";
import { listAddresses } from "#shared/prospects/list/addresses.ts";

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
  async ({ context, caller, query, header }) => {
    const { addresses, after } = await listAddresses(context, caller, query);
    if (after !== undefined) header("Link", `<?after=${after}&limit=${query.limit}>; rel="next"`);
    return addresses;
  },
);
