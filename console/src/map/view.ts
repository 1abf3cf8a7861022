/** Returns the visible part of the map, and updates it after each movement of the map. */
import type { LngLat, Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";

/**
 * The visible box is rounded to 1/10 000 of a degree, about ten metres. A smaller movement of the map usually does not change the rounded
 * box, so the page does not request the prospects in the box again.
 */
const VIEW_STEPS = 10_000;
/**
 * The latitude at which the map ends. Prospects nearer to a pole are drawn on the edge of the map, so a box that reaches the edge includes
 * them.
 */
const MOST_LATITUDE = 85;

/** Returns the visible box for the API: `west,south,east,north`. The box crosses the 180th meridian if west is greater than east. */
export function useView(map: MapLibre | undefined): string | undefined {
  const [view, setView] = useState<string>();
  useEffect(() => {
    if (map === undefined) return;
    const update = () => {
      const bounds = map.getBounds();
      setView(boxOf(bounds.getSouthWest(), bounds.getNorthEast(), VIEW_STEPS));
    };
    update();
    const subscription = map.on("moveend", update);
    return () => subscription.unsubscribe();
  }, [map]);
  return view;
}

/**
 * Returns the box between two corners as the API takes it, rounded outwards to 1/`steps` of a degree. It therefore contains each prospect
 * between the corners.
 */
export function boxOf(southWest: LngLat, northEast: LngLat, steps: number): string {
  const down = (degrees: number): number => Math.floor(degrees * steps) / steps;
  const up = (degrees: number): number => Math.ceil(degrees * steps) / steps;
  const [west, east] = [down(southWest.lng), up(northEast.lng)];
  const [south, north] = [down(southWest.lat), up(northEast.lat)];
  const isWholeWidth = east - west >= 360;
  // MapLibre's longitudes continue beyond 180 when the user moves the map around the globe.
  const onGlobe = (lng: number): number =>
    lng >= -180 && lng <= 180 ? lng : Math.round(((((lng + 180) % 360) + 360) % 360) * steps) / steps - 180;
  return [
    isWholeWidth ? -180 : onGlobe(west),
    south <= -MOST_LATITUDE ? -90 : south,
    isWholeWidth ? 180 : onGlobe(east),
    north >= MOST_LATITUDE ? 90 : north,
  ].join();
}
