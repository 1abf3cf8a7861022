/** The layers of prospects and territories. The browser draws the labels with its own fonts, so no font server is needed. */
import type { FeatureCollection } from "geojson";
import type { ExpressionSpecification, GeoJSONSource, LayerSpecification, Map as MapLibre } from "maplibre-gl";
import { schemeOf } from "../shell/theme.ts";

/** How a source of tiles is drawn. */
export interface TileLayers {
  readonly layersOf: (source: string) => LayerSpecification[];
  /** The id of one more layer whose features a user can click, besides those of `layersOf`. */
  readonly clicked?: string;
  /** The id of the layer in `order` below which these layers are inserted. */
  readonly below: string;
}

const empty: FeatureCollection = { type: "FeatureCollection", features: [] };

/**
 * Empty layers that mark two positions in the stack of layers. Tile layers are replaced when their data changes. Each new tile layer is
 * inserted below one of these empty layers, so prospects always stay above territories.
 */
const order = ["above-territories", "above-prospects"] as const;

/** A transparent image at each pin. The map draws no text over an image, so the names of territories stay away from the pins. */
const ROOM = "room";
const ROOM_PX = 10;

export const CLUSTERS = "clusters";

const FONT = { "text-font": ["sans-serif"] };
const lineColor = (): string => (schemeOf() === "dark" ? "#e8edf2" : "#17202b");

/** Adds the layer of the clusters, which is empty at first. */
export function addClusters(map: MapLibre): void {
  map.addSource(CLUSTERS, { type: "geojson", data: empty });
  map.addLayer({
    id: CLUSTERS,
    type: "symbol",
    source: CLUSTERS,
    layout: {
      ...FONT,
      "icon-image": ["get", "icon"],
      "icon-allow-overlap": true,
      "text-field": ["get", "label"],
      "text-size": 11,
      "text-allow-overlap": true,
    },
    paint: { "text-color": lineColor() },
  });
}

/** The possible places of a territory's name above its point, near the point and farther away, in units of the letter size. */
const namePlaces = [-0.9, -2.4].flatMap((y) =>
  ["bottom", "bottom-left", "bottom-right"].flatMap((anchor): (string | [number, number])[] => [anchor, [0, y]]),
);

/** Adds what a map shows besides its tiles: names of territories, clusters, the mark around the open prospect, and the selected area. */
export function prepareLayers(map: MapLibre): void {
  for (const id of order) map.addLayer({ id, type: "background", layout: { visibility: "none" } });
  for (const id of ["territory-names", "open-prospect"]) map.addSource(id, { type: "geojson", data: empty });
  const isDark = schemeOf() === "dark";
  const color = lineColor();
  map.addImage(ROOM, { width: ROOM_PX, height: ROOM_PX, data: new Uint8Array(4 * ROOM_PX ** 2) });
  const names: LayerSpecification = {
    id: "territory-names",
    type: "symbol",
    source: "territory-names",
    minzoom: 8,
    // MapLibre omits a name if each of its places would cover a pin or a donut, because it places the symbols of the layers above first.
    layout: {
      ...FONT,
      "text-field": ["get", "name"],
      "text-size": 12,
      "text-variable-anchor-offset": namePlaces,
    },
    paint: {
      "text-color": isDark ? "#7fd6cc" : "#0b5f59",
      "text-halo-color": isDark ? "#1b222b" : "#ffffff",
      "text-halo-width": 1.5,
    },
  };
  // Pins are inserted later below the same layer, and so above the names.
  map.addLayer(names, order[1]);
  addClusters(map);
  map.addSource("selected-area", { type: "geojson", data: empty });
  const line = { type: "line", source: "selected-area" } as const;
  map.addLayer({ ...line, id: "selected-area", paint: { "line-color": color, "line-width": 2.5 } });
  map.addLayer({
    id: "open-prospect",
    type: "circle",
    source: "open-prospect",
    paint: {
      "circle-radius": 11,
      "circle-color": "rgba(0,0,0,0)",
      "circle-stroke-color": color,
      "circle-stroke-width": 2.5,
    },
  });
}

export function setData(map: MapLibre | undefined, source: string, data: FeatureCollection): void {
  if (map !== undefined && !isRemoved(map)) map.getSource<GeoJSONSource>(source)?.setData(data);
}

/**
 * Returns true if the page must leave the map alone: the map was removed, or the browser has taken its WebGL context away for now. The page
 * may still have a removed map, for example until the map in other colours is ready. MapLibre would give such a map a new, empty style.
 */
export const isRemoved = (map: MapLibre): boolean => !map.getCanvas().isConnected || !map.style;

export const territoryLayers: TileLayers = {
  below: "above-territories",
  layersOf: (source) => [
    {
      id: `${source}-areas`,
      type: "fill",
      source,
      "source-layer": "territories",
      paint: { "fill-color": ["get", "color"], "fill-opacity": 0.1 },
    },
    {
      id: `${source}-edges`,
      type: "line",
      source,
      "source-layer": "territories",
      paint: { "line-color": ["get", "color"], "line-width": 1.5, "line-opacity": 0.8 },
    },
  ],
};

/** The radius of a pin in pixels. Pins are smaller where the map shows a large area, so that they cover fewer other pins. */
const pinRadius: ExpressionSpecification = ["interpolate", ["linear"], ["zoom"], 9, 4, 13, 6];

/** The layers for the single prospects in the tiles. The clusters in the tiles are drawn by `useProspectTiles`. */
export const prospectLayers: TileLayers = {
  below: "above-prospects",
  clicked: CLUSTERS,
  layersOf: (source) => [
    {
      id: `${source}-pins`,
      type: "circle",
      source,
      "source-layer": "pins",
      paint: {
        "circle-color": ["get", "color"],
        "circle-radius": pinRadius,
        "circle-stroke-color": "#ffffff",
        "circle-stroke-width": 1.5,
        "circle-opacity": 0.92,
      },
    },
    {
      ...{ id: `${source}-room`, type: "symbol", source, "source-layer": "pins" },
      layout: { "icon-image": ROOM, "icon-allow-overlap": true, "icon-padding": 0 },
    },
  ],
};
