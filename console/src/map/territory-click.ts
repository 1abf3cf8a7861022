/** Finds the territory that a user has clicked on a map. */
import type { MapLayerMouseEvent } from "maplibre-gl";
import { CLUSTERS } from "./layers.ts";
import { idOf } from "./tiles.ts";

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
