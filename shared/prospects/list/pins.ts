/** Map pins, streamed as JSON text. Numbers are written digit by digit, which takes a quarter of the time of JavaScript's conversion. */
import * as z from "zod/mini";
import { at, byteAt, doubleAt, uint16At } from "#shared/at.ts";
import type { Caller } from "#shared/auth/caller.ts";
import type { Matches, SegmentMatches } from "#shared/company-index/search/match.ts";
import type { ReadContext } from "#shared/context.ts";
import { explain } from "#shared/documentation.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import type { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { digestOf } from "#shared/prospects/list/multiset-digest.ts";
import { DEFAULT_COLOR } from "#shared/reference/schema.ts";
import { HexColor, Id, LAT_TEXT, LNG_TEXT, named } from "#shared/schema.ts";

export const MapPin = named(
  "MapPin",
  z.object({ id: Id, lat: z.number(), lng: z.number(), statusColor: HexColor }),
  "A prospect on the map. Without a status its colour is `#9CA3AF`.",
);
export type MapPin = z.infer<typeof MapPin>;

/* @__PURE__ */ explain([MapPin], () => ({
  fields: { lat: LAT_TEXT, lng: LNG_TEXT, statusColor: "Colour of the current status." },
}));

/** Use each piece before you request the next one, because all share one buffer. The pins have no defined order. */
export async function mapPins<Current = never>(
  context: ReadContext,
  caller: Caller,
  filter: ProspectFilter,
  validator: Validator<Current> = unconditional,
): Promise<Iterable<Uint8Array | string> | Current> {
  const { names, matches } = await findFiltered(context, caller, filter, { onMap: true });
  const current = fingerprint("pins", caller.companyId, names.version, ...digestOf(matches));
  const notModified = validator.check(current, context.clock.now());
  if (notModified !== undefined) return notModified;
  validator.tag(current);
  return pinPieces(matches, (statusId) => {
    const status = statusId === null ? undefined : names.statuses.get(statusId);
    return pinEnd(JSON.stringify(status?.color ?? DEFAULT_COLOR));
  });
}

/** Returns the end of a pin's JSON text, with the colour of the status. */
type EndOf = (statusId: number | null) => Buffer;

/** Pieces of this number of pins compress well and need only 512 KB of memory. */
const PIECE_PINS = 4_096;

export function* pinPieces(
  { segments, unflushed }: Pick<Matches, "segments" | "unflushed">,
  endOf: EndOf,
): Generator<Uint8Array | string> {
  const text = new PinText();
  let opening: "[" | "," = "[";
  for (const matches of segments) {
    for (const piece of segmentPins(text, opening, matches, endOf)) {
      yield piece;
      opening = ",";
    }
  }
  for (let first = 0; first < unflushed.length; first += PIECE_PINS) {
    text.begin(opening);
    for (const { id, statusId, lat, lng } of unflushed.slice(first, first + PIECE_PINS)) {
      if (lat !== null && lng !== null) text.add(id, lat, lng, endOf(statusId));
    }
    yield text.finish();
    opening = ",";
  }
  yield opening === "[" ? "[]" : "]";
}

function* segmentPins(
  text: PinText,
  opening: "[" | ",",
  { inView, rows: found, inListOrder }: SegmentMatches,
  endOf: EndOf,
): Generator<Uint8Array> {
  const { main, geo } = inView.segment;
  if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
  const { ids, statusId } = main;
  // Pins that are near each other on the map follow each other, which compresses better.
  const rows = inListOrder ? found.toSorted() : found;
  const ends = statusId.values.map(endOf);
  for (let first = 0; first < rows.length; first += PIECE_PINS) {
    text.begin(first === 0 ? opening : ",");
    const after = Math.min(first + PIECE_PINS, rows.length);
    for (let i = first; i < after; i++) {
      const row = uint16At(rows, i);
      const end = at(ends, uint16At(statusId.codes, row));
      text.add(doubleAt(ids, row), doubleAt(geo.lat, row), doubleAt(geo.lng, row), end);
    }
    yield text.finish();
  }
}

/** Maximum bytes of a pin: 20 for field names, 16 for the id, 24 for each coordinate, 25 for the colour, and a reserve. */
const PIN_BYTES = 128;

/** Nearly all coordinates have at most this number of decimals, with which integer operations are fast. */
const DECIMALS = 7;
const SCALE = 10 ** DECIMALS;

/** The digits of the numbers 0 to 99. Writing two digits at once needs half the divisions. */
const PAIRS = Uint8Array.from({ length: 200 }, (_, i) => 48 + (i % 2 === 0 ? Math.floor(i / 20) : (i >> 1) % 10));

/** Operations on 32 bits need integers below this number. */
const SMALL = 2 ** 31;

const [ZERO, POINT, MINUS, COMMA] = [48, 46, 45, 44];
const [ID, LAT, LNG] = [Buffer.from('{"id":'), Buffer.from(',"lat":'), Buffer.from(',"lng":')];

/** `color` must be JSON text in ASCII. */
export const pinEnd = (color: string): Buffer => Buffer.from(`,"statusColor":${color}}`, "latin1");

/** All pieces share one buffer, because collecting the garbage of several buffers would take as long as writing the text. */
export class PinText {
  readonly #bytes = Buffer.allocUnsafe(1 + PIECE_PINS * PIN_BYTES);
  #length = 0;

  begin(opening: "[" | ","): void {
    this.#length = this.#bytes.write(opening, "latin1");
  }

  /** The coordinates must be finite. A piece has space for 4 096 pins. */
  add(id: number, lat: number, lng: number, end: Buffer): void {
    const into = this.#bytes;
    let at = this.#length;
    if (at > 1) into[at++] = COMMA;
    at = writeBytes(into, at, ID);
    at = id < SMALL ? writeInteger(into, at, id) : writeText(into, at, String(id));
    at = writeBytes(into, at, LAT);
    at = writeDegrees(into, at, lat);
    at = writeBytes(into, at, LNG);
    at = writeDegrees(into, at, lng);
    into.set(end, at);
    this.#length = at + end.length;
  }

  /** Returns the piece, which is valid until the next call of `begin`. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/** Writes the bytes and returns the position after the last one, like all functions of this file that write. */
function writeBytes(into: Buffer, from: number, bytes: Buffer): number {
  for (let i = 0; i < bytes.length; i++) into[from + i] = byteAt(bytes, i);
  return from + bytes.length;
}

const writeText = (into: Buffer, at: number, text: string): number => at + into.write(text, at, "latin1");

function writeDegrees(into: Buffer, from: number, degrees: number): number {
  const whole = Math.round(degrees * SCALE);
  if (whole / SCALE !== degrees) return writeText(into, from, String(degrees));
  let at = from;
  if (whole < 0) into[at++] = MINUS;
  const size = Math.abs(whole) | 0;
  const before = (size / SCALE) | 0;
  at = writeInteger(into, at, before);
  const behind = size - before * SCALE;
  if (behind === 0) return at;
  into[at] = POINT;
  // The seven decimals consist of one single digit and three pairs of digits.
  const pairs = (behind / 100) | 0;
  const four = (pairs / 100) | 0;
  const two = (four / 100) | 0;
  into[at + 1] = ZERO + two;
  writePair(into, at + 2, four - two * 100);
  writePair(into, at + 4, pairs - four * 100);
  writePair(into, at + 6, behind - pairs * 100);
  let last = at + DECIMALS;
  while (into[last] === ZERO) last--;
  return last + 1;
}

function writePair(into: Buffer, at: number, value: number): void {
  into[at] = PAIRS[2 * value] ?? ZERO;
  into[at + 1] = PAIRS[2 * value + 1] ?? ZERO;
}

/** `value` is a whole number from 0 to 2^31 - 1. */
function writeInteger(into: Buffer, at: number, value: number): number {
  let end = at + 1;
  for (let limit = 10; limit <= value; limit *= 10) end++;
  let rest = value | 0;
  let digit = end - 2;
  for (; digit >= at; digit -= 2) {
    const more = (rest / 100) | 0;
    writePair(into, digit, rest - more * 100);
    rest = more;
  }
  if (digit === at - 1) into[at] = ZERO + rest;
  return end;
}
