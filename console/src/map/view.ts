/** The visible part of the map, after each movement. */
import type { Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";

/** Decimal places of the box: about ten metres. A small movement then asks for the same answer again. */
const STEPS = 10_000;
/** The map ends here. Places nearer to the poles are drawn on its edge. */
const MOST_LATITUDE = 85;

/** The box as the API takes it: `west,south,east,north`. It crosses the 180th meridian if the west is greater than the east. */
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

// The box is never smaller than the visible part, so that the table has each prospect that the map shows.
const down = (degrees: number): number => Math.floor(degrees * STEPS) / STEPS;
const up = (degrees: number): number => Math.ceil(degrees * STEPS) / STEPS;

/** The map counts on when the user moves it around the globe. */
function onGlobe(lng: number): number {
  if (lng >= -180 && lng <= 180) return lng;
  return Math.round(((((lng + 180) % 360) + 360) % 360) * STEPS) / STEPS - 180;
}
