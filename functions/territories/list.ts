/** GET /api/territories: lists the company's territories. */
import * as z from "zod/mini";
import { streamItems } from "#shared/http/streaming.ts";
import { listTerritories, Territory } from "#shared/territories/territories.ts";

export const handler = streamItems(
  {
    summary: "List territories",
    description: "All territories of the company, newest first.",
    allow: "everyone",
    scope: "territories:read",
    response: z.array(Territory),
  },
  async ({ context, caller }) => listTerritories(context, caller.companyId),
);
