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

/** The colours of sea, land, grid and coast, on a light and on a dark screen. */
const colours = {
  light: { sea: "#dfe9ee", land: "#f7f6f2", grid: "#e4e2da", coast: "#b9c6cd" },
  dark: { sea: "#101820", land: "#1b222b", grid: "#262f39", coast: "#3c4954" },
} as const;

export const ownStyle = (scheme: keyof typeof colours): StyleSpecification => ({
  version: 8,
  sources: {
    land: { type: "geojson", data: new URL(landUrl, location.href).href, attribution: "Natural Earth" },
    grid: { type: "geojson", data: { type: "Feature", properties: {}, geometry: grid } },
  },
  layers: [
    { id: "sea", type: "background", paint: { "background-color": colours[scheme].sea } },
    { id: "land", type: "fill", source: "land", paint: { "fill-color": colours[scheme].land } },
    {
      id: "grid",
      type: "line",
      source: "grid",
      minzoom: 3,
      maxzoom: 8,
      paint: { "line-color": colours[scheme].grid, "line-width": 1 },
    },
    { id: "coast", type: "line", source: "land", paint: { "line-color": colours[scheme].coast, "line-width": 1 } },
  ],
});
