/** The schema of polygons, and their packed form: a point takes 4 to 13 bytes instead of about 40 as JSON, and loses no precision. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import * as z from "zod/mini";
import { byteAt } from "#shared/at.ts";
import { ByteReader, ByteWriter } from "#shared/company-index/encoding.ts";
import * as limits from "#shared/limits.ts";
import { coordinate } from "#shared/schema.ts";

/** `[lng, lat]` in degrees, not rounded, because the API returns a polygon exactly as it was sent. */
const Point = z.tuple([coordinate(180), coordinate(90)], { error: "must be a point [lng, lat] of two numbers" });

const [FEWEST, MOST] = [limits.polygonPointsMin, limits.polygonPointsMax];
export const Ring = z.array(Point);
export const RingInput = Ring.check(
  z.minLength(FEWEST, { error: ({ input }) => `must have at least ${FEWEST} points, and has ${lengthOf(input)}` }),
  z.maxLength(MOST, { error: ({ input }) => `must have at most ${MOST} points, and has ${lengthOf(input)}` }),
);

const lengthOf = (input: unknown): number => (Array.isArray(input) ? input.length : 0);

export type Polygon = readonly (readonly [number, number])[];

/** Maximum decimals of coordinates that are packed as integers. Such integers are below 2^52, where doubles are exact. */
const MOST_DECIMALS = 13;
/** The first number of a packed polygon is the number of decimals of its coordinates, or this value if they are stored as doubles. */
const DOUBLES = 255;
const DOUBLE_BYTES = 8;

/** Packs coordinates as integers, each as the difference from the previous point. Packs doubles if `MOST_DECIMALS` do not suffice. */
export function packPolygon(polygon: Polygon): Uint8Array<ArrayBuffer> {
  const into = new ByteWriter();
  const decimals = decimalsOf(polygon);
  into.integer(decimals ?? DOUBLES);
  into.integer(polygon.length);
  if (decimals === undefined) into.raw(shuffled(polygon.flat()));
  else writeScaled(into, polygon, 10 ** decimals);
  return Buffer.from(zstdCompressSync(into.finish()));
}

export function unpackPolygon(packed: Uint8Array): [number, number][] {
  const from = new ByteReader(zstdDecompressSync(packed));
  const decimals = from.integer();
  const count = from.integer();
  return decimals === DOUBLES
    ? readDoubles(from.raw(count * 2 * DOUBLE_BYTES), count)
    : readScaled(from, count, 10 ** decimals);
}

/** Returns the decimals that all coordinates need. Undefined if these are more than `MOST_DECIMALS`. */
function decimalsOf(polygon: Polygon): number | undefined {
  for (let decimals = 0; decimals <= MOST_DECIMALS; decimals++) {
    const isExact = (it: number): boolean => Math.round(it * 10 ** decimals) / 10 ** decimals === it;
    if (polygon.every((point) => point.every(isExact))) return decimals;
  }
  return undefined;
}

function writeScaled(into: ByteWriter, polygon: Polygon, scale: number): void {
  let [lastLng, lastLat] = [0, 0];
  for (const [lng, lat] of polygon) {
    const [x, y] = [Math.round(lng * scale), Math.round(lat * scale)];
    into.signed(x - lastLng);
    into.signed(y - lastLat);
    [lastLng, lastLat] = [x, y];
  }
}

function readScaled(from: ByteReader, count: number, scale: number): [number, number][] {
  let [x, y] = [0, 0];
  return Array.from({ length: count }, () => {
    x += from.signed();
    y += from.signed();
    return [x / scale, y / scale];
  });
}

/** Returns the first bytes of all values, then all second bytes, and so on. Neighbouring bytes are then often equal and compress well. */
function shuffled(values: readonly number[]): Uint8Array {
  const plain = new DataView(new ArrayBuffer(values.length * DOUBLE_BYTES));
  for (const [i, value] of values.entries()) plain.setFloat64(i * DOUBLE_BYTES, value);
  const bytes = new Uint8Array(plain.byteLength);
  for (let i = 0; i < bytes.length; i++) {
    bytes[(i % DOUBLE_BYTES) * values.length + Math.floor(i / DOUBLE_BYTES)] = plain.getUint8(i);
  }
  return bytes;
}

function readDoubles(bytes: Uint8Array, count: number): [number, number][] {
  const values = 2 * count;
  const plain = new DataView(new ArrayBuffer(bytes.length));
  for (let i = 0; i < bytes.length; i++) {
    plain.setUint8(i, byteAt(bytes, (i % DOUBLE_BYTES) * values + Math.floor(i / DOUBLE_BYTES)));
  }
  const at = (i: number): number => plain.getFloat64(i * DOUBLE_BYTES);
  return Array.from({ length: count }, (_, i) => [at(2 * i), at(2 * i + 1)]);
}
