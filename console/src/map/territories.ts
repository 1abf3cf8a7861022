/** The territories on a map: their areas as tiles, and their names. */
import type { MapLayerMouseEvent, Map as MapLibre } from "maplibre-gl";
import { useEffect, useMemo } from "react";
import { useTerritories } from "../api/reference.ts";
import { territoryNames } from "./features.ts";
import { setData, territoryLayers } from "./layers.ts";
import { type TileState, useTiles } from "./tiles.ts";

const url = `${location.origin}/api/territories/tiles/{z}/{x}/{y}.mvt`;

export function useTerritoriesOn(map: MapLibre | undefined, onClick: (event: MapLayerMouseEvent) => void): TileState {
  // `dataUpdatedAt` is the time at which the list of territories was loaded. It serves as the version of the tiles, so that the map loads
  // the tiles again whenever the list is loaded again, for example after a change of a territory.
  const { data, dataUpdatedAt: version } = useTerritories();
  const tiles = useMemo(() => (version === 0 ? undefined : { url, version }), [version]);
  useEffect(() => {
    if (map !== undefined && data !== undefined) setData(map, "territory-names", territoryNames(data));
  }, [map, data]);
  return useTiles(map, tiles, territoryLayers, { click: onClick });
}
