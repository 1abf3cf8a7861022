/** The layers of prospects and territories. The labels are drawn by the browser's own fonts, so that no font server is needed. */

import type { FeatureCollection } from "geojson";
import type { GeoJSONSource, Map as MapLibre } from "maplibre-gl";

const empty: FeatureCollection = { type: "FeatureCollection", features: [] };

export function addTerritoryLayers(map: MapLibre): void {
  map.addSource("territories", { type: "geojson", data: empty });
  map.addLayer({
    id: "territory-areas",
    type: "fill",
    source: "territories",
    paint: { "fill-color": "#0f766e", "fill-opacity": 0.07 },
  });
  map.addLayer({
    id: "territory-edges",
    type: "line",
    source: "territories",
    paint: { "line-color": "#0f766e", "line-width": 1.5, "line-opacity": 0.7 },
  });
}

export function addTerritoryLabels(map: MapLibre): void {
  map.addLayer({
    id: "territory-names",
    type: "symbol",
    source: "territories",
    minzoom: 8,
    layout: { "text-field": ["get", "name"], "text-font": ["sans-serif"], "text-size": 12, "text-max-width": 6 },
    paint: { "text-color": "#0b5f59", "text-halo-color": "#ffffff", "text-halo-width": 1.5 },
  });
}

export function addProspectLayers(map: MapLibre): void {
  map.addSource("prospects", { type: "geojson", data: empty });
  map.addLayer({
    id: "prospects",
    type: "circle",
    source: "prospects",
    paint: {
      "circle-color": ["get", "color"],
      // The area of a circle grows with the logarithm of its count, so that a cluster of thousands does not cover its neighbours.
      "circle-radius": ["case", ["==", ["get", "count"], 1], 6, ["+", 9, ["*", 2.5, ["log10", ["get", "count"]]]]],
      "circle-stroke-color": "#ffffff",
      "circle-stroke-width": 1.5,
      "circle-opacity": 0.92,
    },
  });
  map.addLayer({
    id: "prospect-counts",
    type: "symbol",
    source: "prospects",
    filter: [">", ["get", "count"], 1],
    layout: {
      "text-field": ["to-string", ["get", "count"]],
      "text-font": ["sans-serif"],
      "text-size": 11,
      "text-allow-overlap": true,
    },
    paint: { "text-color": "#17202b", "text-halo-color": "#ffffff", "text-halo-width": 1.5 },
  });
  map.addLayer({
    id: "prospect-open",
    type: "circle",
    source: "prospects",
    filter: ["==", ["get", "id"], -1],
    paint: {
      "circle-radius": 11,
      "circle-color": "rgba(0,0,0,0)",
      "circle-stroke-color": "#17202b",
      "circle-stroke-width": 2.5,
    },
  });
}

/** Marks the prospect that is open beside the map. */
export const markOpen = (map: MapLibre, id: number | undefined): unknown =>
  map.setFilter("prospect-open", ["==", ["get", "id"], id ?? -1]);

export function setData(map: MapLibre, source: "prospects" | "territories", data: FeatureCollection): void {
  map.getSource<GeoJSONSource>(source)?.setData(data);
}
