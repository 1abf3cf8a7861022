/** Reads what the map shows beside its tiles. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Clusters } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";
import { type Filter, withFilter } from "../prospects/filter.ts";
import type { Bounds } from "./canvas.tsx";
import { boundsOf } from "./features.ts";
import type { Tiles } from "./tiles.ts";

const WORLD = "-180,-90,180,90";

/** The prospects of the filter on the whole map. */
export interface Overview {
  /** How many prospects have a place. */
  readonly mapped: number;
  readonly unmapped: number;
  readonly bounds: Bounds | undefined;
  /** The tiles wait for this answer, so that the map first moves to the prospects and loads no tiles of another place. */
  readonly tiles: Tiles;
}

export const useOverview = (filter: Filter) =>
  useQuery({
    queryKey: ["prospects", "overview", filter],
    queryFn: async ({ signal }): Promise<Overview> => {
      // At this zoom, the clusters are few. Their boxes and counts are exact.
      const query = { ...filter, bbox: WORLD, zoom: 0 };
      const clusters = await answer(api.GET("/api/prospects/clusters", { params: { query }, signal }));
      const url = withFilter(`${location.origin}/api/prospects/tiles/{z}/{x}/{y}.mvt`, filter);
      return {
        mapped: clusters.total,
        unmapped: clusters.unmapped,
        bounds: boundsOfClusters(clusters),
        tiles: { url, version: Date.now() },
      };
    },
    placeholderData: keepPreviousData,
  });

const boundsOfClusters = ({ items }: Clusters): Bounds | undefined =>
  boundsOf(
    items.flatMap(({ lng, lat, bbox: [west = lng, south = lat, east = lng, north = lat] = [] }) => [
      [west, south] as const,
      [east, north] as const,
    ]),
  );
