/**
 * The base map that the console contains itself: the outline of the land and a grid of degrees. It needs no internet access and no API key.
 */

import { landUrl } from "virtual:land-outline";
import type { StyleSpecification } from "maplibre-gl";

/** The lines of the grid are one degree apart. From south to north, one degree is about 70 miles. */
const grid = {
  type: "MultiLineString" as const,
  coordinates: [
    ...Array.from({ length: 361 }, (_, i) => [
      [i - 180, -85],
      [i - 180, 85],
    ]),
    ...Array.from({ length: 171 }, (_, i) => [
      [-180, i - 85],
      [180, i - 85],
    ]),
  ],
};

export const ownStyle: StyleSpecification = {
  version: 8,
  sources: {
    land: { type: "geojson", data: new URL(landUrl, location.href).href, attribution: "Natural Earth" },
    grid: { type: "geojson", data: { type: "Feature", properties: {}, geometry: grid } },
  },
  layers: [
    { id: "sea", type: "background", paint: { "background-color": "#dfe9ee" } },
    { id: "land", type: "fill", source: "land", paint: { "fill-color": "#f7f6f2" } },
    {
      id: "grid",
      type: "line",
      source: "grid",
      minzoom: 3,
      maxzoom: 8,
      paint: { "line-color": "#e4e2da", "line-width": 1 },
    },
    { id: "coast", type: "line", source: "land", paint: { "line-color": "#b9c6cd", "line-width": 1 } },
  ],
};
