/** Writes vector tiles (Mapbox Vector Tile specification 2.1). */
import { PbfWriter } from "pbf";
import { EXTENT } from "#shared/tiles/tile.ts";

/** Field numbers of the Protocol Buffers messages in the specification. */
const TILE = { layer: 3 } as const;
const LAYER = { name: 1, feature: 2, key: 3, value: 4, extent: 5, version: 15 } as const;
const FEATURE = { id: 1, tags: 2, type: 3, geometry: 4 } as const;
const VALUE = { text: 1, unsigned: 5 } as const;
/** Values of the specification's enumeration `GeomType`. */
const GEOMETRY_TYPE = { point: 1, polygon: 3 } as const;
const VERSION = 2;

/** Numbers of the geometry commands. `command` puts such a number into the lowest three bits, and the repeat count into the other bits. */
const [MOVE_TO, LINE_TO, CLOSE_PATH] = [1, 2, 7];
const command = (id: number, count: number): number => (count << 3) | id;
const zigzag = (value: number): number => (value << 1) ^ (value >> 31);

export type Position = readonly [x: number, y: number];

/** A string, or a non-negative integer. */
export type AttributeValue = string | number;

type Attributes = Readonly<Record<string, AttributeValue>>;

interface Feature {
  /** A non-negative integer. */
  readonly id?: number;
  readonly type: keyof typeof GEOMETRY_TYPE;
  readonly geometry: number[];
  /** Pairs of indexes: an attribute's name in the layer's list of names, and its value in the layer's list of values. */
  readonly tags: number[];
}

/**
 * Collects the features of one layer. Features refer to attribute names and values by index, so the layer stores each name and value once.
 */
export class Layer {
  readonly #name: string;
  readonly #features: Feature[] = [];
  readonly #keys = new Map<string, number>();
  readonly #values = new Map<AttributeValue, number>();

  constructor(name: string) {
    this.#name = name;
  }

  addPoint([x, y]: Position, attributes: Attributes, id?: number): void {
    this.#add("point", [command(MOVE_TO, 1), zigzag(x), zigzag(y)], attributes, id);
  }

  /**
   * Adds a polygon with one ring of at least three positions. The ring must not repeat its first position at the end, and must be clockwise
   * on the screen.
   */
  addPolygon(ring: readonly Position[], attributes: Attributes, id?: number): void {
    const geometry: number[] = [];
    let [lastX, lastY] = [0, 0];
    for (const [at, [x, y]] of ring.entries()) {
      if (at === 0) geometry.push(command(MOVE_TO, 1));
      if (at === 1) geometry.push(command(LINE_TO, ring.length - 1));
      geometry.push(zigzag(x - lastX), zigzag(y - lastY));
      [lastX, lastY] = [x, y];
    }
    geometry.push(command(CLOSE_PATH, 1));
    this.#add("polygon", geometry, attributes, id);
  }

  #add(type: Feature["type"], geometry: number[], attributes: Attributes, id: number | undefined): void {
    const tags: number[] = [];
    for (const [key, value] of Object.entries(attributes)) {
      tags.push(positionOf(this.#keys, key), positionOf(this.#values, value));
    }
    this.#features.push({ type, geometry, tags, ...(id !== undefined && { id }) });
  }

  get isEmpty(): boolean {
    return this.#features.length === 0;
  }

  write(into: PbfWriter): void {
    into.writeVarintField(LAYER.version, VERSION);
    into.writeStringField(LAYER.name, this.#name);
    into.writeVarintField(LAYER.extent, EXTENT);
    for (const key of this.#keys.keys()) into.writeStringField(LAYER.key, key);
    for (const value of this.#values.keys()) into.writeMessage(LAYER.value, writeValue, value);
    for (const feature of this.#features) into.writeMessage(LAYER.feature, writeFeature, feature);
  }
}

function writeFeature({ id, type, geometry, tags }: Feature, into: PbfWriter): void {
  if (id !== undefined) into.writeVarintField(FEATURE.id, id);
  into.writePackedVarint(FEATURE.tags, tags);
  into.writeVarintField(FEATURE.type, GEOMETRY_TYPE[type]);
  into.writePackedVarint(FEATURE.geometry, geometry);
}

function positionOf<T>(known: Map<T, number>, value: T): number {
  const position = known.get(value) ?? known.size;
  known.set(value, position);
  return position;
}

function writeValue(value: AttributeValue, into: PbfWriter): void {
  if (typeof value === "string") into.writeStringField(VALUE.text, value);
  else into.writeVarintField(VALUE.unsigned, value);
}

/** Returns the bytes of a tile. Layers without features are left out. */
export function vectorTile(layers: readonly Layer[]): Uint8Array {
  const tile = new PbfWriter();
  for (const layer of layers) {
    if (!layer.isEmpty) tile.writeMessage(TILE.layer, (_, into) => layer.write(into), undefined);
  }
  return tile.finish();
}
