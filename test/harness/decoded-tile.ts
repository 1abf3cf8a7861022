/** Decodes vector tiles with a library that shares no code with the service. */
import { VectorTile, type VectorTileFeature } from "@mapbox/vector-tile";
import { PbfReader } from "pbf";

interface DecodedFeature {
  readonly id: number | undefined;
  readonly type: VectorTileFeature["type"];
  readonly properties: VectorTileFeature["properties"];
  /** The lines of the geometry. The geometry of a point is one line with one position. */
  readonly lines: readonly (readonly [x: number, y: number])[][];
}

/** Returns the features of a tile, by the name of their layer. */
export function decodedTile(bytes: Uint8Array): Record<string, DecodedFeature[]> {
  const { layers } = new VectorTile(new PbfReader(bytes));
  return Object.fromEntries(
    Object.entries(layers).map(([name, layer]) => {
      if (layer.version !== 2 || layer.extent !== 4_096)
        throw new Error(`the layer ${name} has another version or extent`);
      return [name, Array.from({ length: layer.length }, (_, at) => decoded(layer.feature(at)))];
    }),
  );
}

const decoded = (feature: VectorTileFeature): DecodedFeature => ({
  id: feature.id,
  type: feature.type,
  properties: feature.properties,
  lines: feature.loadGeometry().map((line) => line.map(({ x, y }) => [x, y] as const)),
});
