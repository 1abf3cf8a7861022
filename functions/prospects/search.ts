/** POST /api/prospects/search: lists prospects like GET /api/prospects, but takes the filters from the request body. */
import { jsonBody } from "#shared/http/request-body.ts";
import { streamEndpoint } from "#shared/http/streaming.ts";
import { listProspects, ProspectPage, SearchBody } from "#shared/prospects/list/list.ts";

export const handler = streamEndpoint(
  {
    summary: "Search prospects",
    description:
      'The same list as `GET /api/prospects`, with the filters in the field `filter` of the body. `filter` may also have a polygon. The request changes nothing. The service refuses an unknown name in `filter`. It ignores a filter outside `filter`, as every unknown field of a body: `{"status":"New"}` finds all prospects.',
    allow: "everyone",
    scope: "prospects:read",
    body: SearchBody,
    response: ProspectPage,
  },
  ({ context, caller, body: { filter, ...pages } }) => listProspects(context, caller, { ...filter, ...pages }),
  { body: jsonBody() },
);
