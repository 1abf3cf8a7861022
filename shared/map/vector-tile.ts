/** Writes vector tiles (Mapbox Vector Tile specification 2.1). */
import { PbfWriter } from "pbf";
import { EXTENT } from "#shared/map/tile.ts";

/** Field numbers of the Protocol Buffers messages in the specification. */
const TILE = { layer: 3 } as const;
const LAYER = { name: 1, feature: 2, key: 3, value: 4, extent: 5, version: 15 } as const;
const FEATURE = { id: 1, tags: 2, type: 3, geometry: 4 } as const;
const VALUE = { text: 1, unsigned: 5 } as const;
/** Values of the specification's enumeration `GeomType`. */
const GEOMETRY_TYPE = { point: 1, polygon: 3 } as const;
const VERSION = 2;

/** The commands of geometries. A command is in the lowest three bits, and its repeat count in the other bits. */
const [MOVE_TO, LINE_TO, CLOSE_PATH] = [1, 2, 7];
const command = (id: number, count: number): number => (count << 3) | id;
const zigzag = (value: number): number => (value << 1) ^ (value >> 31);

export type Position = readonly [x: number, y: number];

/** A string, or a non-negative integer. */
export type AttributeValue = string | number;

type Attributes = Readonly<Record<string, AttributeValue>>;

/**
 * A layer has each attribute name and value once, and features refer to them by index. A value is written directly before the first feature
 * that has it. The id of a pin is a value and the id of its feature: it then occurs twice within a few bytes, and gzip stores it once.
 */
export class Layer {
  readonly #bytes = new PbfWriter();
  readonly #keys = new Map<string, number>();
  readonly #values = new Map<AttributeValue, number>();
  #features = 0;

  constructor(name: string) {
    this.#bytes.writeVarintField(LAYER.version, VERSION);
    this.#bytes.writeStringField(LAYER.name, name);
    this.#bytes.writeVarintField(LAYER.extent, EXTENT);
  }

  addPoint([x, y]: Position, attributes: Attributes, id?: number): void {
    this.#add("point", [command(MOVE_TO, 1), zigzag(x), zigzag(y)], attributes, id);
  }

  /**
   * Adds a polygon. Each ring must have at least three positions, and must not repeat its first position at the end. An outer ring must be
   * clockwise on the screen. Its holes follow it and must be counter-clockwise.
   */
  addPolygon(rings: readonly (readonly Position[])[], attributes: Attributes, id?: number): void {
    const geometry: number[] = [];
    let [lastX, lastY] = [0, 0];
    for (const ring of rings) {
      for (const [at, [x, y]] of ring.entries()) {
        if (at === 0) geometry.push(command(MOVE_TO, 1));
        if (at === 1) geometry.push(command(LINE_TO, ring.length - 1));
        geometry.push(zigzag(x - lastX), zigzag(y - lastY));
        [lastX, lastY] = [x, y];
      }
      geometry.push(command(CLOSE_PATH, 1));
    }
    this.#add("polygon", geometry, attributes, id);
  }

  #add(type: Feature["type"], geometry: number[], attributes: Attributes, id: number | undefined): void {
    const tags: number[] = [];
    for (const [key, value] of Object.entries(attributes)) {
      tags.push(indexIn(this.#keys, key, () => this.#bytes.writeStringField(LAYER.key, key)));
      tags.push(indexIn(this.#values, value, () => this.#bytes.writeMessage(LAYER.value, writeValue, value)));
    }
    this.#bytes.writeMessage(LAYER.feature, writeFeature, { id, type, geometry, tags });
    this.#features++;
  }

  get isEmpty(): boolean {
    return this.#features === 0;
  }

  /** Nothing can be added afterwards. */
  finish(): Uint8Array {
    return this.#bytes.finish();
  }
}

/** Returns the index of a name or value of the layer. Calls `write` if the layer does not contain it yet. */
function indexIn<T>(known: Map<T, number>, value: T, write: () => void): number {
  const index = known.get(value) ?? known.size;
  if (index === known.size) write();
  known.set(value, index);
  return index;
}

/** Returns the layer `meta` with one feature. The specification requires a geometry for each feature, but this position has no meaning. */
export function metaLayer(attributes: Attributes): Layer {
  const meta = new Layer("meta");
  meta.addPoint([EXTENT / 2, EXTENT / 2], attributes);
  return meta;
}

interface Feature {
  readonly id: number | undefined;
  readonly type: keyof typeof GEOMETRY_TYPE;
  readonly geometry: number[];
  /** Pairs of indexes: an attribute's name in the layer's list of names, and its value in the layer's list of values. */
  readonly tags: number[];
}

/** The order of the fields was measured: with it, gzip makes a tile of 5 000 pins the smallest (docs/decisions/2026-11-23-map.md). */
function writeFeature({ id, type, geometry, tags }: Feature, into: PbfWriter): void {
  into.writePackedVarint(FEATURE.geometry, geometry);
  if (id !== undefined) into.writeVarintField(FEATURE.id, id);
  into.writePackedVarint(FEATURE.tags, tags);
  into.writeVarintField(FEATURE.type, GEOMETRY_TYPE[type]);
}

function writeValue(value: AttributeValue, into: PbfWriter): void {
  if (typeof value === "string") into.writeStringField(VALUE.text, value);
  else into.writeVarintField(VALUE.unsigned, value);
}

export function vectorTile(layers: readonly Layer[]): Uint8Array {
  const tile = new PbfWriter();
  for (const layer of layers) if (!layer.isEmpty) tile.writeBytesField(TILE.layer, layer.finish());
  return tile.finish();
}
