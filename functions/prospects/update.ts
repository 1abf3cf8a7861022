/** PATCH /api/prospects/{id}: changes a prospect. Fields that the request does not contain keep their values. */
import { command } from "#shared/http/endpoint.ts";
import { IdPath } from "#shared/http/paths.ts";
import * as limits from "#shared/limits.ts";
import { ProspectPatch } from "#shared/prospects/input.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { updateProspect } from "#shared/prospects/write.ts";

export const handler = command(
  {
    summary: "Change a prospect",
    description: `Only sent fields change; null clears a field. A new \`currentStatusId\` adds an entry to the status history. Above ${limits.statusChangesPerProspect} entries the answer is 409. \`customFieldData\` is replaced as a whole.`,
    allow: "everyone",
    scope: "prospects:write",
    path: IdPath,
    body: ProspectPatch,
    response: Prospect,
  },
  ({ context, caller, path, body }) => updateProspect(context, caller, path.id, body),
);
