/** Drawing on the map with Terra Draw: a freehand area, and polygons whose corners can be moved. */
import type { Map as MapLibre } from "maplibre-gl";
import { TerraDraw, TerraDrawFreehandMode, TerraDrawPolygonMode, TerraDrawSelectMode } from "terra-draw";
import { TerraDrawMapLibreGLAdapter } from "terra-draw-maplibre-gl-adapter";
import { isRemoved } from "./layers.ts";

/** Decimal places of drawn coordinates. Six are precise to about a decimetre. */
const DECIMALS = 6;

/**
 * Lets the user draw an area freehand, and calls `done` with the area's GeoJSON ring. There are two ways to draw. The user holds the mouse
 * button, or a finger on the screen, while drawing. Or the user clicks at the beginning and at the end, and moves the mouse in between
 * without holding the button. The returned function ends the drawing.
 */
export function drawFreehand(map: MapLibre, done: (ring: number[][]) => void): () => void {
  const mode = new TerraDrawFreehandMode({ minDistance: 8, drawInteraction: "click-move-or-drag" });
  const draw = drawing(map, mode, done);
  return () => stop(map, draw);
}

interface Drawing {
  /** Called after each corner, with all corners so far. */
  readonly onCorner: (corners: readonly number[][]) => void;
  /** Called with the GeoJSON ring of the finished polygon. */
  readonly onDone: (ring: number[][]) => void;
}

/** Lets the user click the corners of a polygon. The returned function ends the drawing. */
export function drawPolygon(map: MapLibre, { onCorner, onDone }: Drawing): () => void {
  // By default, Escape would delete the corners. The page handles Escape instead.
  const mode = new TerraDrawPolygonMode({ keyEvents: { cancel: null, finish: "Enter" } });
  const draw = drawing(map, mode, onDone);
  let known = 0;
  draw.on("change", () => {
    for (const { geometry, properties } of draw.getSnapshot()) {
      // Only the first `count` positions are corners. After them, the ring has the position of the pointer and the first corner again.
      const count = Number(properties.committedCoordinateCount);
      if (geometry.type !== "Polygon" || !Number.isInteger(count) || count === known) continue;
      known = count;
      onCorner((geometry.coordinates[0] ?? []).slice(0, count));
    }
  });
  return () => stop(map, draw);
}

interface Editing {
  /** Returns the ring with the changes that the user has made so far. */
  readonly ring: () => number[][] | undefined;
  readonly stop: () => void;
}

/** Lets the user drag, add and delete the corners of a closed ring. Calls `onChange` after each change. */
export function editPolygon(map: MapLibre, ring: readonly number[][], onChange: (ring: number[][]) => void): Editing {
  const coordinates = { midpoints: true, draggable: true, deletable: true };
  const selecting = new TerraDrawSelectMode({ flags: { polygon: { feature: { draggable: true, coordinates } } } });
  const draw = started(map, [new TerraDrawPolygonMode(), selecting]);
  const rounded = ring.map((position) => position.map((value) => Number(value.toFixed(DECIMALS))));
  const [{ id } = { id: undefined }] = draw.addFeatures([
    { type: "Feature", properties: { mode: "polygon" }, geometry: { type: "Polygon", coordinates: [rounded] } },
  ]);
  if (id !== undefined) draw.selectFeature(id);
  const current = () => (id === undefined ? undefined : ringOf(draw, id));
  draw.on("finish", () => onChange(current() ?? []));
  return { ring: current, stop: () => stop(map, draw) };
}

type Modes = ConstructorParameters<typeof TerraDraw>[0]["modes"];

function started(map: MapLibre, modes: Modes): TerraDraw {
  const adapter = new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: DECIMALS });
  const draw = new TerraDraw({ adapter, modes });
  draw.start();
  return draw;
}

/** Begins to draw in this mode. Calls `done` with the ring of the finished polygon. */
function drawing(map: MapLibre, mode: Modes[number], done: (ring: number[][]) => void): TerraDraw {
  const draw = started(map, [mode]);
  draw.setMode(mode.mode);
  draw.on("finish", (id) => {
    const ring = ringOf(draw, id);
    if (ring !== undefined) done(ring);
  });
  return draw;
}

function ringOf(draw: TerraDraw, id: string | number): number[][] | undefined {
  const geometry = draw.getSnapshotFeature(id)?.geometry;
  return geometry?.type === "Polygon" ? geometry.coordinates[0] : undefined;
}

/** Ends the drawing. Does nothing if the map was removed, for example because a change of the page's colours has made a new map. */
function stop(map: MapLibre, draw: TerraDraw): void {
  if (!isRemoved(map)) draw.stop();
}
