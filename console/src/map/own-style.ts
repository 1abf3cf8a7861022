/**
 * The console's own base map: a grid of degrees, the outline of the land, and streets if the settings of the deployment contain them. It
 * needs no provider and no key.
 */

import { landUrl } from "virtual:land-outline";
import type { FeatureCollection } from "geojson";
import type { Map as MapLibre, StyleSpecification } from "maplibre-gl";

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

/** The colours of sea, land, grid, coast, streets and their names, on a light and on a dark screen. */
const colours = {
  light: { sea: "#dfe9ee", land: "#f7f6f2", grid: "#e4e2da", coast: "#b9c6cd", street: "#c4bca8", text: "#5b6470" },
  dark: { sea: "#101820", land: "#1b222b", grid: "#262f39", coast: "#3c4954", street: "#4a5866", text: "#a8b3be" },
} as const;

export type Scheme = keyof typeof colours;

/** The layers of the base map are below this empty layer, and the records above it. */
export const BASE_END = "base-end";

/** The style with which a map begins. It loads nothing, so that the records come first. */
export const firstStyle = (scheme: Scheme): StyleSpecification => ({
  version: 8,
  sources: { grid: { type: "geojson", data: { type: "Feature", properties: {}, geometry: grid } } },
  layers: [
    { id: "sea", type: "background", paint: { "background-color": colours[scheme].land } },
    {
      id: "grid",
      type: "line",
      source: "grid",
      minzoom: 3,
      maxzoom: 8,
      paint: { "line-color": colours[scheme].grid, "line-width": 1 },
    },
    { id: BASE_END, type: "background", layout: { visibility: "none" } },
  ],
});

/** Adds the outline of the land and the lines in `streets`, below the streets of a provider. */
export function addOutline(map: MapLibre, scheme: Scheme, streets: FeatureCollection | null): void {
  if (map.getSource("land") !== undefined) return;
  const { sea, land, coast, street, text } = colours[scheme];
  map.setPaintProperty("sea", "background-color", sea);
  map.addSource("land", {
    type: "geojson",
    data: new URL(landUrl, location.href).href,
    attribution: "Natural Earth",
  });
  map.addLayer({ id: "land", type: "fill", source: "land", paint: { "fill-color": land } }, "grid");
  map.addLayer({ id: "coast", type: "line", source: "land", paint: { "line-color": coast, "line-width": 1 } }, "grid");
  if (streets === null) return;
  map.addSource("streets", { type: "geojson", data: streets });
  map.addLayer(
    {
      id: "streets",
      type: "line",
      source: "streets",
      minzoom: 9,
      layout: { "line-cap": "round" },
      paint: { "line-color": street, "line-width": ["interpolate", ["exponential", 1.5], ["zoom"], 9, 2, 18, 22] },
    },
    "grid",
  );
  map.addLayer(
    {
      id: "street-names",
      type: "symbol",
      source: "streets",
      minzoom: 12,
      layout: {
        "symbol-placement": "line",
        "text-field": ["get", "name"],
        "text-font": ["sans-serif"],
        "text-size": 11,
      },
      paint: { "text-color": text, "text-halo-color": land, "text-halo-width": 1.5 },
    },
    "grid",
  );
}
