/** The territories on a map: their areas as tiles, their names, and the one that a user clicks. */
import type { MapLayerMouseEvent, Map as MapLibre } from "maplibre-gl";
import { useEffect, useMemo } from "react";
import { useTerritories } from "../api/reference.ts";
import { territoryNames } from "./features.ts";
import { CLUSTERS, setData, territoryLayers } from "./layers.ts";
import { idOf, type TileState, useTiles } from "./tiles.ts";

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

/** The fields of a territory that the map tiles contain. */
export interface ClickedTerritory {
  readonly id: number;
  readonly name: string;
  readonly assignedToUserId: number | undefined;
}

/** Returns the territory at the click. Returns undefined if a prospect is there too, because the click is then meant for the prospect. */
export function clickedTerritory(event: MapLayerMouseEvent): ClickedTerritory | undefined {
  const isOnProspect = event.target
    .queryRenderedFeatures(event.point)
    .some(({ sourceLayer, layer }) => sourceLayer === "pins" || layer.id === CLUSTERS);
  const id = idOf(event);
  if (isOnProspect || id === undefined) return undefined;
  const { name, assignedToUserId } = event.features?.[0]?.properties ?? {};
  return {
    id,
    name: String(name),
    assignedToUserId: assignedToUserId === undefined ? undefined : Number(assignedToUserId),
  };
}
