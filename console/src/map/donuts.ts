/** Shows the prospects of map tiles: single prospects as pins, and clusters as donuts with the colours of their statuses. */
import type { Feature } from "geojson";
import { type GeoJSONFeature, type MapLayerMouseEvent, type Map as MapLibre, MercatorCoordinate } from "maplibre-gl";
import { useEffect, useRef } from "react";
import { useStatuses } from "../api/reference.ts";
import { schemeOf } from "../shell/theme.ts";
import { NO_STATUS } from "../ui/badge.tsx";
import { type Cluster, radiusOf, withoutOverlaps } from "./clusters.ts";
import { collection, point } from "./features.ts";
import { CLUSTERS, isRemoved, prospectLayers, setData } from "./layers.ts";
import { type TileState, type Tiles, useTiles } from "./tiles.ts";

/** The share of each status in a donut is rounded to 1/`PARTS`, so that many clusters have the same image. */
const PARTS = 24;
/** Images have two pixels for each pixel of the screen, which suffices for the screens of phones. */
const PIXEL_RATIO = 2;
const shortNumber = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function useProspectTiles(
  map: MapLibre | undefined,
  tiles: Tiles | undefined,
  onClick: (event: MapLayerMouseEvent) => void,
): TileState {
  const statuses = useStatuses().data;
  const last = useRef<{ map: MapLibre; text: string }>(undefined);
  // When the statuses arrive, draw the clusters again, because the donuts have the colours of the statuses.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must run when the statuses arrive
  useEffect(() => {
    if (map !== undefined && !isRemoved(map)) map.triggerRepaint();
  }, [map, statuses]);
  return useTiles(map, tiles, prospectLayers, {
    click: onClick,
    drawn: (source) => {
      if (map === undefined) return;
      const colors = new Map(statuses?.map(({ id, color }) => [`status_${id}`, color]));
      const found = source === undefined ? [] : withoutOverlaps(clustersIn(map, source), map.getZoom());
      const features = donutsOf(map, found, (name) => colors.get(name) ?? NO_STATUS);
      // After `setData`, the map draws and calls this function again. So set only data that has changed, or the calls would never end.
      const text = JSON.stringify(features);
      if (last.current?.map !== map || text !== last.current.text) setData(map, CLUSTERS, collection(features));
      last.current = { map, text };
    },
  });
}

function clustersIn(map: MapLibre, source: string): Cluster[] {
  const found = map.querySourceFeatures(source, { sourceLayer: "clusters" });
  // If the map is so wide that it shows the world several times, it returns each cluster several times. Keep each cluster once.
  return [...new Map(found.map((feature) => [feature.properties.key, clusterOf(feature)])).values()];
}

function clusterOf({
  geometry,
  properties: { key: _, count, status: __, color: ___, ...byStatus },
}: GeoJSONFeature): Cluster {
  const [lng = 0, lat = 0] = geometry.type === "Point" ? geometry.coordinates : [];
  const { x, y } = MercatorCoordinate.fromLngLat([lng, lat]);
  return { x, y, count, byStatus };
}

/** Returns the features that draw the clusters in the layer `CLUSTERS`. `colorOf` returns the colour for a key of `byStatus`. */
export const donutsOf = (map: MapLibre, clusters: readonly Cluster[], colorOf: (status: string) => string): Feature[] =>
  clusters.map(({ x, y, count, byStatus }) => {
    const shares = Object.entries(byStatus).map(([status, number]) => [colorOf(status), number] as const);
    const { lng, lat } = new MercatorCoordinate(x, y).toLngLat();
    return point(lng, lat, { count, label: shortNumber.format(count), icon: donutOf(map, count, shares) });
  });

/** Returns the name of the image of a donut, and adds the image to the map if it is new. */
function donutOf(map: MapLibre, count: number, shares: readonly (readonly [color: string, number: number])[]): string {
  const parts = shares
    .map(([color, number]) => [color, Math.max(1, Math.round((PARTS * number) / count))] as const)
    .sort(([, a], [, b]) => b - a);
  const radius = Math.round(radiusOf(count));
  const name = `donut ${radius} ${parts.join(" ")}`;
  if (!map.hasImage(name)) map.addImage(name, donut(radius, parts), { pixelRatio: PIXEL_RATIO });
  return name;
}

function donut(radius: number, parts: readonly (readonly [color: string, number: number])[]): ImageData {
  const size = 2 * radius * PIXEL_RATIO;
  const context = new OffscreenCanvas(size, size).getContext("2d");
  if (context === null) throw new Error("this browser has no canvas");
  const center = size / 2;
  const fill = (color: string, part: number, from: number, to: number): void => {
    context.beginPath();
    context.moveTo(center, center);
    context.arc(center, center, center * part, 2 * Math.PI * from - Math.PI / 2, 2 * Math.PI * to - Math.PI / 2);
    context.fillStyle = color;
    context.fill();
  };
  const middle = schemeOf() === "dark" ? "#1b222b" : "#ffffff";
  fill(middle, 1, 0, 1);
  const total = parts.reduce((sum, [, number]) => sum + number, 0);
  let from = 0;
  for (const [color, number] of parts) {
    fill(color, 0.94, from, from + number / total);
    from += number / total;
  }
  fill(middle, 0.66, 0, 1);
  return context.getImageData(0, 0, size, size);
}
