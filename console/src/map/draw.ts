/** Drawing on the map with Terra Draw: a freehand area, and polygons whose corners can be moved. */
import type { Map as MapLibre } from "maplibre-gl";
import { TerraDraw, TerraDrawFreehandMode, TerraDrawPolygonMode, TerraDrawSelectMode } from "terra-draw";
import { TerraDrawMapLibreGLAdapter } from "terra-draw-maplibre-gl-adapter";

/** Decimal places of drawn coordinates. Six are precise to about a decimetre. */
const DECIMALS = 6;

/**
 * Lets the user draw an area freehand, and calls `done` with the area's GeoJSON ring. There are two ways to draw. The user holds the mouse
 * button, or a finger on the screen, while drawing. Or the user clicks at the beginning and at the end, and moves the mouse in between
 * without holding the button. The returned function ends the drawing.
 */
export function drawFreehand(map: MapLibre, done: (ring: number[][]) => void): () => void {
  const draw = new TerraDraw({
    adapter: new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: DECIMALS }),
    modes: [new TerraDrawFreehandMode({ minDistance: 8, drawInteraction: "click-move-or-drag" })],
  });
  draw.start();
  draw.setMode("freehand");
  draw.on("finish", (id) => {
    const geometry = draw.getSnapshotFeature(id)?.geometry;
    if (geometry?.type === "Polygon") done(geometry.coordinates[0] ?? []);
  });
  return () => draw.stop();
}

/** Lets the user click the corners of a polygon, and calls `done` with its GeoJSON ring. The returned function ends the drawing. */
export function drawPolygon(map: MapLibre, done: (ring: number[][]) => void): () => void {
  const draw = new TerraDraw({
    adapter: new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: DECIMALS }),
    modes: [new TerraDrawPolygonMode()],
  });
  draw.start();
  draw.setMode("polygon");
  draw.on("finish", (id) => {
    const geometry = draw.getSnapshotFeature(id)?.geometry;
    if (geometry?.type === "Polygon") done(geometry.coordinates[0] ?? []);
  });
  return () => draw.stop();
}

interface Editing {
  /** Returns the ring with the changes that the user has made so far. */
  readonly ring: () => number[][] | undefined;
  readonly stop: () => void;
}

/** Lets the user drag, add and delete the corners of a closed ring. */
export function editPolygon(map: MapLibre, ring: readonly number[][]): Editing {
  const coordinates = { midpoints: true, draggable: true, deletable: true };
  const draw = new TerraDraw({
    adapter: new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: DECIMALS }),
    modes: [
      new TerraDrawPolygonMode(),
      new TerraDrawSelectMode({ flags: { polygon: { feature: { draggable: true, coordinates } } } }),
    ],
  });
  draw.start();
  const rounded = ring.map((position) => position.map((value) => Number(value.toFixed(DECIMALS))));
  const [{ id } = { id: undefined }] = draw.addFeatures([
    { type: "Feature", properties: { mode: "polygon" }, geometry: { type: "Polygon", coordinates: [rounded] } },
  ]);
  if (id !== undefined) draw.selectFeature(id);
  return {
    ring: () => {
      const geometry = id === undefined ? undefined : draw.getSnapshotFeature(id)?.geometry;
      return geometry?.type === "Polygon" ? geometry.coordinates[0] : undefined;
    },
    stop: () => draw.stop(),
  };
}
