/** Reads the number and the bounds of the prospects for the map, makes the URL of the tiles, and counts the prospects of a territory. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { Clusters } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";
import { type Filter, withFilter } from "../prospects/filter.ts";
import { type Bounds, boundsOf } from "./features.ts";
import type { Tiles } from "./tiles.ts";

const WORLD = "-180,-90,180,90";

/** The counts and the bounds of all prospects that match the filter. */
export interface Overview {
  /** Number of prospects with coordinates. `unmapped` is the number of those without. */
  readonly mapped: number;
  readonly unmapped: number;
  readonly bounds: Bounds | undefined;
  /** The tiles to load. The map gets `tiles` together with `bounds`, so that it moves to the prospects before it loads tiles. */
  readonly tiles: Tiles;
}

export const useOverview = (filter: Filter) =>
  useQuery({
    queryKey: ["prospects", "overview", filter],
    queryFn: async ({ signal }): Promise<Overview> => {
      // One request for all clusters at zoom 0 is enough: there are only a few for the whole world, and their boxes and counts are exact.
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

export const useStats = (id: number) =>
  useQuery({
    queryKey: ["prospects", "territory-stats", id],
    queryFn: () => answer(api.GET("/api/territories/{id}/stats", { params: { path: { id } } })),
  });
