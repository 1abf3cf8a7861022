/** GET /api/prospects/clusters: returns the prospects in a part of the map that match the filters, as clusters and pins. */
import { streamEndpoint } from "#shared/http/streaming.ts";
import { ClusterQuery, Clusters, prospectClusters } from "#shared/map/clusters.ts";
import { paging } from "#shared/prospects/filter.ts";

export const handler = streamEndpoint(
  {
    summary: "List clusters on the map",
    description:
      "Accepts the filters of the list, and ignores `page` and `pageSize`. The clusters are the cells of a fixed grid, so moving the map changes none of them. Their counts are exact and add up to `total`.",
    allow: "everyone",
    scope: "prospects:read",
    query: ClusterQuery,
    ignoredQuery: paging,
    response: Clusters,
  },
  ({ context, caller, query }) => prospectClusters(context, caller, query),
);
