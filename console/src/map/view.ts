/** The visible part of the map, after each movement. */
import type { Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";
import type { View } from "./queries.ts";

/** Decimal places of the box: about ten metres. A small movement then asks for the same answer again. */
const DECIMALS = 4;
/** Mercator maps end here. */
const MOST_LATITUDE = 85;

export function useView(map: MapLibre | undefined): View | undefined {
  const [view, setView] = useState<View>();
  useEffect(() => {
    if (map === undefined) return;
    const update = () => setView(viewOf(map));
    update();
    const subscription = map.on("moveend", update);
    return () => subscription.unsubscribe();
  }, [map]);
  return view;
}

function viewOf(map: MapLibre): View {
  const bounds = map.getBounds();
  const limit = (value: number, most: number) => Number(Math.max(-most, Math.min(most, value)).toFixed(DECIMALS));
  return {
    zoom: Math.floor(map.getZoom()),
    bounds: [
      limit(bounds.getWest(), 180),
      limit(bounds.getSouth(), MOST_LATITUDE),
      limit(bounds.getEast(), 180),
      limit(bounds.getNorth(), MOST_LATITUDE),
    ],
  };
}
