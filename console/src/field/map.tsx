/** The map of the field mode: one pin for each building, the user's position, and long presses for new doors. */
import type { FeatureCollection } from "geojson";
import {
  type ExpressionSpecification,
  GeoJSONSource,
  type LayerSpecification,
  type LngLat,
  type Map as MapLibre,
  type MapMouseEvent,
  type MapTouchEvent,
} from "maplibre-gl";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { Canvas } from "../map/canvas.tsx";
import { area, type Bounds, boundsOf, collection, point } from "../map/features.ts";
import { isRemoved } from "../map/layers.ts";
import { NO_STATUS } from "../ui/badge.tsx";
import { ringAround } from "./distance.ts";
import type { Door } from "./door.ts";
import type { Measured } from "./position.ts";

/** A finger covers about this many pixels in each direction (WCAG 2.5.5: targets of 44 pixels). */
const FINGER_PX = 22;
const LONG_PRESS_MS = 600;
const WALK_ZOOM = 17;

interface MapProps {
  readonly doors: readonly Door[];
  readonly selected: Door | undefined;
  readonly me: Measured | undefined;
  /** True if the map keeps the user's position in its middle. */
  readonly isFollowing: boolean;
  /** The doors under a finger, the nearest building first. */
  readonly onDoors: (doors: readonly Door[]) => void;
  readonly onLongPress: (place: LngLat) => void;
  readonly onMove: () => void;
}

export function FieldMap({ doors, selected, me, isFollowing, onDoors, onLongPress, onMove }: MapProps) {
  const [map, setMap] = useState<MapLibre>();
  const buildings = useMemo(() => buildingsOf(doors), [doors]);
  const [bounds] = useState<Bounds | undefined>(() =>
    boundsOf(doors.flatMap(({ position }) => (position === undefined ? [] : [position]))),
  );
  const press = useEffectEvent((event: MapMouseEvent) => {
    const { x, y } = event.point;
    const box: [[number, number], [number, number]] = [
      [x - FINGER_PX, y - FINGER_PX],
      [x + FINGER_PX, y + FINGER_PX],
    ];
    const features = event.target.queryRenderedFeatures(box, { layers: ["doors", "door-clusters"] });
    const found = features.flatMap(({ properties }) => buildings[Number(properties.building)] ?? []);
    const near = [...new Set(found)].sort((a, b) => pixels(event, a) - pixels(event, b));
    if (near.length > 0) onDoors(near.flatMap((building) => building.doors));
    else if (features.length > 0) event.target.easeTo({ center: event.lngLat, zoom: event.target.getZoom() + 2 });
  });
  const longPress = useEffectEvent(onLongPress);
  const moved = useEffectEvent(onMove);
  useEffect(() => {
    if (map === undefined) return;
    let timer = 0;
    const stop = (): void => clearTimeout(timer);
    const start = (event: MapTouchEvent): void => {
      stop();
      if (event.points.length === 1) timer = window.setTimeout(() => longPress(event.lngLat), LONG_PRESS_MS);
    };
    const listening = [
      map.on("click", (event) => press(event)),
      map.on("contextmenu", (event) => {
        if (!("pointerType" in event.originalEvent) || event.originalEvent.pointerType !== "touch")
          longPress(event.lngLat);
      }),
      map.on("touchstart", start),
      map.on("dragstart", () => moved()),
      ...(["touchend", "touchcancel", "dragstart", "zoomstart"] as const).map((name) => map.on(name, stop)),
    ];
    return () => {
      stop();
      for (const { unsubscribe } of listening) unsubscribe();
    };
  }, [map]);
  useEffect(() => setData(map, "doors", collection(buildings.map(featureOf))), [map, buildings]);
  const [lng, lat] = selected?.position ?? [];
  useEffect(() => {
    if (map === undefined || lng === undefined || lat === undefined) return;
    setData(map, "selected-door", collection([point(lng, lat)]));
    const isVisible = map.getZoom() >= WALK_ZOOM - 2 && map.getBounds().contains([lng, lat]);
    // The sheet covers the lower part of the map.
    map.easeTo({
      center: [lng, lat],
      offset: [0, -map.getContainer().clientHeight / 5],
      zoom: isVisible ? map.getZoom() : WALK_ZOOM,
    });
    return () => setData(map, "selected-door", collection([]));
  }, [map, lng, lat]);
  useEffect(() => {
    if (map === undefined || me === undefined) return;
    setData(map, "me", collection([area(ringAround(me.position, me.accuracyM)), point(...me.position)]));
    if (isFollowing) map.easeTo({ center: [...me.position], zoom: Math.max(map.getZoom(), WALK_ZOOM) });
  }, [map, me, isFollowing]);
  const ready = (made: MapLibre): void => {
    addLayers(made);
    setMap(made);
  };
  return <Canvas label="Map of doors" bounds={bounds} onReady={ready} />;
}

interface Building {
  readonly position: readonly [lng: number, lat: number];
  readonly doors: Door[];
}

/** Doors at the same place (about a metre) are units of one building. */
function buildingsOf(doors: readonly Door[]): Building[] {
  const found = new Map<string, Building>();
  for (const door of doors) {
    if (door.position === undefined) continue;
    const key = door.position.map((degrees) => degrees.toFixed(5)).join();
    const building = found.get(key);
    if (building === undefined) found.set(key, { position: door.position, doors: [door] });
    else building.doors.push(door);
  }
  return [...found.values()];
}

/** A building has the colour and the first letter of its status, or the number of its units. */
const featureOf = ({ position: [lng, lat], doors }: Building, building: number) => {
  const [first, ...others] = doors;
  const isMixed = others.some(({ status }) => status?.id !== first?.status?.id);
  const color = isMixed ? NO_STATUS : (first?.status?.color ?? NO_STATUS);
  const text = others.length > 0 ? `${doors.length}` : (first?.status?.value.slice(0, 1) ?? "");
  return point(lng, lat, { building, color, text });
};

function pixels({ target, point: { x, y } }: MapMouseEvent, { position: [lng, lat] }: Building): number {
  const at = target.project([lng, lat]);
  return Math.hypot(at.x - x, at.y - y);
}

type Source = "doors" | "selected-door" | "me";

function setData(map: MapLibre | undefined, source: Source, data: FeatureCollection): void {
  if (map === undefined || isRemoved(map)) return;
  const found = map.getSource(source);
  if (found instanceof GeoJSONSource) void found.setData(data);
}

const onlyPoints: ExpressionSpecification = ["==", ["geometry-type"], "Point"];
/** Larger from zoom 15 on, where a rep walks. */
const pinRadius = (extra = 0): ExpressionSpecification => [
  "interpolate",
  ["linear"],
  ["zoom"],
  12,
  7 + extra,
  15,
  10 + extra,
  18,
  15 + extra,
];

function addLayers(map: MapLibre): void {
  const data = collection([]);
  map.addSource("me", { type: "geojson", data });
  map.addSource("selected-door", { type: "geojson", data });
  map.addSource("doors", { type: "geojson", data, cluster: true, clusterRadius: 50, clusterMaxZoom: 13 });
  const white = { "circle-stroke-color": "#ffffff", "circle-stroke-width": 2 };
  const texts = { "text-font": ["sans-serif"], "text-size": 12, "text-allow-overlap": true };
  const isCluster: ExpressionSpecification = ["has", "point_count"];
  const layers: LayerSpecification[] = [
    { id: "accuracy", type: "fill", source: "me", paint: { "fill-color": "#2563eb", "fill-opacity": 0.12 } },
    {
      ...{ id: "door-clusters", type: "circle", source: "doors", filter: isCluster },
      paint: {
        ...white,
        "circle-color": "#3d4a59",
        "circle-radius": ["+", 12, ["*", 3, ["log10", ["get", "point_count"]]]],
      },
    },
    {
      ...{ id: "cluster-counts", type: "symbol", source: "doors", filter: isCluster },
      layout: { ...texts, "text-field": ["to-string", ["get", "point_count"]] },
      paint: { "text-color": "#ffffff" },
    },
    {
      ...{ id: "doors", type: "circle", source: "doors", filter: ["!", isCluster] },
      paint: { ...white, "circle-color": ["get", "color"], "circle-radius": pinRadius() },
    },
    {
      ...{ id: "door-texts", type: "symbol", source: "doors", filter: ["!", isCluster], minzoom: 15 },
      layout: { ...texts, "text-field": ["get", "text"] },
      paint: { "text-color": "#ffffff", "text-halo-color": "#17202b", "text-halo-width": 1 },
    },
    {
      ...{ id: "selected-door", type: "circle", source: "selected-door" },
      paint: {
        "circle-radius": pinRadius(5),
        "circle-color": "rgba(0,0,0,0)",
        "circle-stroke-color": "#17202b",
        "circle-stroke-width": 3,
      },
    },
    {
      ...{ id: "me", type: "circle", source: "me", filter: onlyPoints },
      paint: { ...white, "circle-color": "#2563eb", "circle-radius": 7 },
    },
  ];
  for (const layer of layers) map.addLayer(layer);
}
