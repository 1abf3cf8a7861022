/** GET /api/addresses: lists the company's addresses. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/streaming.ts";
import * as limits from "#shared/limits.ts";
import { Address } from "#shared/prospects/address.ts";
import { AddressQuery } from "#shared/prospects/address-input.ts";
import { listAddresses } from "#shared/prospects/list/addresses.ts";

export const handler = streamItems(
  {
    summary: "List addresses",
    description: `In the order of ids, at most 500 addresses at once. If there may be more, a \`Link\` header with \`rel="next"\` contains the URL of the next page. A user who sees only own prospects gets the addresses of these prospects and addresses without a prospect. One request checks at most ${limits.addressesLookedThrough} addresses of the company, so a page with this header may be short or empty.`,
    allow: "everyone",
    scope: "prospects:read",
    query: AddressQuery,
    response: z.array(Address),
  },
  async ({ context, caller, query, header }) => {
    const { addresses, after } = await listAddresses(context, caller, query);
    if (after !== undefined) header("Link", `<?after=${after}&limit=${query.limit}>; rel="next"`);
    return addresses;
  },
);
