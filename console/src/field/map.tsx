/** The map of the field mode: one pin for each building, the user's position, and long presses for new doors. */
import type { Feature } from "geojson";
import {
  type ExpressionSpecification,
  type LayerSpecification,
  type LngLat,
  type Map as MapLibre,
  type MapMouseEvent,
  type MapTouchEvent,
  MercatorCoordinate,
} from "maplibre-gl";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { at } from "../../../shared/at.ts";
import { Canvas } from "../map/canvas.tsx";
import { type Cluster, withoutOverlaps } from "../map/clusters.ts";
import { donutsOf } from "../map/donuts.ts";
import { area, type Bounds, boundsOf, collection, point } from "../map/features.ts";
import { addClusters, CLUSTERS, isRemoved, setData } from "../map/layers.ts";
import { NO_STATUS } from "../ui/badge.tsx";
import { metresBetween, type Position, ringAround } from "./distance.ts";
import type { Door } from "./door.ts";
import type { Measured } from "./position.ts";

/** A press finds doors up to this many pixels away in each direction, because a finger covers 44 pixels (WCAG 2.5.5). */
const FINGER_PX = 22;
const LONG_PRESS_MS = 600;
const WALK_ZOOM = 17;
/** Metres. A map that follows the user also shows the selected door if it is nearer than this. */
const SEEN_M = 400;
const MARGINS = { top: 64, left: 48, right: 48 };
/** From this zoom on, the map shows a pin for each building, and no clusters. */
const PIN_ZOOM = 14;

interface MapProps {
  readonly doors: readonly Door[];
  readonly selected: Door | undefined;
  readonly me: Measured | undefined;
  /** True if the map keeps the user's position in its middle. */
  readonly isFollowing: boolean;
  /** Called after a press with the doors under the finger, the nearest building first. */
  readonly onDoors: (doors: readonly Door[]) => void;
  readonly onLongPress: (place: LngLat) => void;
  readonly onMove: () => void;
}

export function FieldMap({ doors, selected, me, isFollowing, onDoors, onLongPress, onMove }: MapProps) {
  const [map, setMap] = useState<MapLibre>();
  /** The position to which the map was last moved, and the pins with which it was created. Effects do not set the same ones again. */
  const begun = useRef<{ place: string; pins?: Feature[] | undefined }>({ place: "" });
  const [zoom, setZoom] = useState(PIN_ZOOM);
  const buildings = useMemo(() => buildingsOf(doors), [doors]);
  const { pins, clusters } = useMemo(() => shownAt(buildings, zoom), [buildings, zoom]);
  const [bounds] = useState<Bounds | undefined>(() =>
    boundsOf(doors.flatMap(({ position }) => (position === undefined ? [] : [position]))),
  );
  const press = useEffectEvent((event: MapMouseEvent | MapTouchEvent, isLong = false) => {
    const { x, y } = event.point;
    const box: [[number, number], [number, number]] = [
      [x - FINGER_PX, y - FINGER_PX],
      [x + FINGER_PX, y + FINGER_PX],
    ];
    const features = event.target.queryRenderedFeatures(box, { layers: ["doors", CLUSTERS] });
    const found = features.flatMap(({ properties }) => buildings[Number(properties.building)] ?? []);
    const near = [...new Set(found)].sort((a, b) => pixels(event, a) - pixels(event, b));
    if (near.length > 0) onDoors(near.flatMap((building) => building.doors));
    else if (isLong) onLongPress(event.lngLat);
    else if (features.length > 0) event.target.easeTo({ center: event.lngLat, zoom: event.target.getZoom() + 2 });
  });
  const moved = useEffectEvent(onMove);
  useEffect(() => {
    if (map === undefined) return;
    let timer = 0;
    const stop = (): void => clearTimeout(timer);
    const start = (event: MapTouchEvent): void => {
      stop();
      if (event.points.length !== 1) return;
      timer = window.setTimeout(() => {
        // When the user lifts the finger, the browser would click what the opened dialog has at this position. Prevent that click. After a
        // touchcancel, the next touchend belongs to another touch, whose click must not be lost.
        const touch = new AbortController();
        const lift = (event: TouchEvent): void => {
          touch.abort();
          if (event.type === "touchend") event.preventDefault();
        };
        const listening = { capture: true, passive: false, signal: touch.signal };
        for (const name of ["touchend", "touchcancel"] as const) addEventListener(name, lift, listening);
        press(event, true);
      }, LONG_PRESS_MS);
    };
    const listening = [
      map.on("click", (event) => press(event)),
      map.on("contextmenu", (event) => {
        if (!("pointerType" in event.originalEvent) || event.originalEvent.pointerType !== "touch") press(event, true);
      }),
      map.on("touchstart", start),
      map.on("dragstart", () => moved()),
      map.on("moveend", () => setZoom(levelOf(map))),
      ...(["touchend", "touchcancel", "dragstart", "zoomstart"] as const).map((name) => map.on(name, stop)),
    ];
    return () => {
      stop();
      for (const { unsubscribe } of listening) unsubscribe();
    };
  }, [map]);
  useEffect(() => {
    if (map === undefined || isRemoved(map)) return;
    if (begun.current.pins !== pins) setData(map, "doors", collection(pins));
    begun.current.pins = undefined;
    setData(map, CLUSTERS, collection(donutsOf(map, clusters, (color) => color)));
  }, [map, pins, clusters]);
  const [lng, lat] = selected?.position ?? [];
  useEffect(() => {
    if (map === undefined || lng === undefined || lat === undefined) return;
    setData(map, "selected-door", collection([point(lng, lat)]));
    if (begun.current.place !== `${lng},${lat}`) moveTo(map, [lng, lat]);
    begun.current.place = `${lng},${lat}`;
    return () => setData(map, "selected-door", collection([]));
  }, [map, lng, lat]);
  useEffect(() => {
    if (map === undefined || me === undefined) return;
    setData(map, "me", collection([area(ringAround(me.position, me.accuracyM)), point(...me.position)]));
    if (!isFollowing) return;
    const door: Position | undefined = lng === undefined || lat === undefined ? undefined : [lng, lat];
    const both = door && metresBetween(me.position, door) < SEEN_M ? boundsOf([me.position, door]) : undefined;
    if (both === undefined) map.easeTo({ center: [...me.position], zoom: Math.max(map.getZoom(), WALK_ZOOM) });
    // The lower half of the map stays free, because the sheet covers it.
    else map.fitBounds([...both], { maxZoom: WALK_ZOOM, padding: { ...MARGINS, bottom: innerHeight / 2 } });
  }, [map, me, isFollowing, lng, lat]);
  const ready = (made: MapLibre): void => {
    // The new map begins at the selected door and with its pins, because it then draws fewer frames. On a slow phone, each takes 0.1 s.
    if (selected?.position !== undefined) moveTo(made, selected.position, false);
    addLayers(made, pins);
    begun.current = { place: `${lng},${lat}`, pins };
    setZoom(levelOf(made));
    setMap(made);
  };
  return <Canvas label="Map of doors" bounds={bounds} isPlaced={selected?.position !== undefined} onReady={ready} />;
}

/** Moves the map so that the door is above the sheet, which covers the lower part of the map. */
function moveTo(map: MapLibre, position: Position, animate = true): void {
  const isVisible = map.getZoom() >= WALK_ZOOM - 2 && map.getBounds().contains([...position]);
  const offset: [number, number] = [0, -map.getContainer().clientHeight / 5];
  map.easeTo({ center: [...position], offset, zoom: isVisible ? map.getZoom() : WALK_ZOOM, animate });
}

/** Returns the zoom for clusters: the map's zoom, rounded down. Clusters that do not overlap at a zoom do not overlap at a larger one. */
const levelOf = (map: MapLibre): number => Math.min(PIN_ZOOM, Math.floor(map.getZoom()));

/** The doors at one place. `byStatus` counts them by the colours of their statuses. */
interface Building extends Cluster {
  readonly position: Position;
  readonly doors: readonly Door[];
}

/** Returns the buildings. Doors with the same position, rounded to about a metre, are units of one building. */
function buildingsOf(doors: readonly Door[]): Building[] {
  const placed = doors.flatMap((door) => (door.position === undefined ? [] : [{ door, position: door.position }]));
  const byPlace = Map.groupBy(placed, ({ position }) => position.map((degrees) => degrees.toFixed(5)).join());
  return [...byPlace.values()].map((units) => {
    const { position } = at(units, 0);
    const { x, y } = MercatorCoordinate.fromLngLat([...position]);
    const byStatus: Record<string, number> = {};
    for (const { door } of units) {
      const color = door.status?.color ?? NO_STATUS;
      byStatus[color] = (byStatus[color] ?? 0) + 1;
    }
    return { x, y, count: units.length, byStatus, position, doors: units.map(({ door }) => door) };
  });
}

function shownAt(buildings: readonly Building[], zoom: number): { pins: Feature[]; clusters: Cluster[] } {
  if (zoom >= PIN_ZOOM) return { pins: buildings.map(pinOf), clusters: [] };
  const shown = new Set<Cluster>(withoutOverlaps(buildings, zoom));
  // `delete` removes each single building from the set. The clusters of several buildings are left.
  const pins = buildings.flatMap((building, i) => (shown.delete(building) ? pinOf(building, i) : []));
  return { pins, clusters: [...shown] };
}

/** Returns the pin of a building: the colour and the first letter of its status, or the number of its doors if it has several. */
function pinOf({ position: [lng, lat], byStatus, doors }: Building, building: number): Feature {
  const [color, ...others] = Object.keys(byStatus);
  const text = doors.length > 1 ? `${doors.length}` : (at(doors, 0).status?.value.slice(0, 1) ?? "");
  return point(lng, lat, { building, color: others.length > 0 ? NO_STATUS : color, text });
}

function pixels(
  { target, point: { x, y } }: MapMouseEvent | MapTouchEvent,
  { position: [lng, lat] }: Building,
): number {
  const at = target.project([lng, lat]);
  return Math.hypot(at.x - x, at.y - y);
}

const onlyPoints: ExpressionSpecification = ["==", ["geometry-type"], "Point"];
/** Returns the radius of a pin in pixels, plus `extra`. The radius grows from zoom 12 to zoom 18. */
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

function addLayers(map: MapLibre, pins: Feature[]): void {
  map.addSource("doors", { type: "geojson", data: collection(pins) });
  for (const id of ["me", "selected-door"]) map.addSource(id, { type: "geojson", data: collection([]) });
  const white = { "circle-stroke-color": "#ffffff", "circle-stroke-width": 2 };
  const texts = { "text-font": ["sans-serif"], "text-size": 12, "text-allow-overlap": true };
  const layers: LayerSpecification[] = [
    { id: "accuracy", type: "fill", source: "me", paint: { "fill-color": "#2563eb", "fill-opacity": 0.12 } },
    {
      ...{ id: "doors", type: "circle", source: "doors" },
      paint: { ...white, "circle-color": ["get", "color"], "circle-radius": pinRadius() },
    },
    {
      ...{ id: "door-texts", type: "symbol", source: "doors", minzoom: 15 },
      layout: { ...texts, "text-field": ["get", "text"] },
      paint: { "text-color": "#ffffff", "text-halo-color": "#17202b", "text-halo-width": 1 },
    },
    {
      ...{ id: "selected-door", type: "circle", source: "selected-door" },
      paint: {
        "circle-radius": pinRadius(5),
        "circle-color": "rgba(0,0,0,0)",
        "circle-stroke-color": "#2f7bff",
        "circle-stroke-width": 3,
      },
    },
    {
      ...{ id: "me", type: "circle", source: "me", filter: onlyPoints },
      paint: { ...white, "circle-color": "#2563eb", "circle-radius": 7 },
    },
  ];
  addClusters(map);
  for (const layer of layers) map.addLayer(layer);
}
