/** GET /api/prospects/{id}: reads one prospect with its newest notes, all appointments and the status history. */
import { IdPath } from "#shared/http/paths.ts";
import { streamEndpoint } from "#shared/http/streaming.ts";
import { ProspectDetail } from "#shared/prospects/detail.ts";
import { readProspect } from "#shared/prospects/read.ts";

export const handler = streamEndpoint(
  {
    summary: "Get a prospect",
    description: "The prospect with its 5 newest notes, all appointments and the complete status history.",
    allow: "everyone",
    scope: "prospects:read",
    path: IdPath,
    revalidated: true,
    response: ProspectDetail,
  },
  ({ context, caller, path, validator }) => readProspect(context, caller, path.id, validator),
);
