/** Returns the visible part of the map, and updates it after each movement of the map. */
import type { Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";

/**
 * The box is rounded to 1/10 000 of a degree, about ten metres. After a smaller movement, the page sends the same request, whose result it
 * may already have.
 */
const STEPS = 10_000;
/**
 * The latitude at which the map ends. Prospects nearer to a pole are drawn on the edge of the map, so a box that reaches the edge includes
 * them.
 */
const MOST_LATITUDE = 85;

/** Returns the box as the API takes it: `west,south,east,north`. The box crosses the 180th meridian if west is greater than east. */
export function useView(map: MapLibre | undefined): string | undefined {
  const [view, setView] = useState<string>();
  useEffect(() => {
    if (map === undefined) return;
    const update = () => setView(boxOf(map));
    update();
    const subscription = map.on("moveend", update);
    return () => subscription.unsubscribe();
  }, [map]);
  return view;
}

function boxOf(map: MapLibre): string {
  const bounds = map.getBounds();
  const [west, east] = [down(bounds.getWest()), up(bounds.getEast())];
  const [south, north] = [down(bounds.getSouth()), up(bounds.getNorth())];
  const isWholeWidth = east - west >= 360;
  return [
    isWholeWidth ? -180 : onGlobe(west),
    south <= -MOST_LATITUDE ? -90 : south,
    isWholeWidth ? 180 : onGlobe(east),
    north >= MOST_LATITUDE ? 90 : north,
  ].join();
}

// The box is rounded outwards, so that the table contains each prospect that the map shows.
const down = (degrees: number): number => Math.floor(degrees * STEPS) / STEPS;
const up = (degrees: number): number => Math.ceil(degrees * STEPS) / STEPS;

/**
 * Converts a longitude to the range from -180 to 180. MapLibre's longitudes continue beyond 180 when the user moves the map around the
 * globe.
 */
function onGlobe(lng: number): number {
  if (lng >= -180 && lng <= 180) return lng;
  return Math.round(((((lng + 180) % 360) + 360) % 360) * STEPS) / STEPS - 180;
}
