/** GET /api/changes: returns a snapshot of all records that the caller may see, and then the changes since the snapshot began. */
import { apiContext } from "#shared/context.ts";
import { streamEndpoint } from "#shared/http/streaming.ts";
import * as limits from "#shared/limits.ts";
import { useKeyService } from "#shared/secrets/key-service.ts";
import { readChanges } from "#shared/sync/changes/changes.ts";
import { ChangesPage, ChangesQuery } from "#shared/sync/changes/schema.ts";

useKeyService();

export const handler = streamEndpoint(
  {
    summary: "Read what has changed",
    description: `For clients that keep a copy and are often offline. Without a cursor, the answer begins a snapshot of everything that the caller may see. The last page's cursor then returns what has changed since. A client applies each item whose \`version\` is not lower than that of its copy, in the order of the answers. No change is missing, but a change may be repeated. \`hasMore: false\` means that there is nothing else. A cursor belongs to one user and to its types, and is valid for 60 days. 410 means that the client must begin anew: \`reason\` says why, and \`Location\` is the first request. A page has at most ${limits.changesBytes} bytes, unless it has a single item.`,
    allow: "everyone",
    scope: "prospects:read",
    query: ChangesQuery,
    mayReset: true,
    response: ChangesPage,
  },
  ({ caller, query }) => readChanges(apiContext(), caller, query),
);
