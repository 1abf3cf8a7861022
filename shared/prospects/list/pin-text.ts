/** The JSON text of map pins, digit by digit: at a million pins, each microsecond of one is a second of the request. */

/** A pin without its end: 20 bytes of names, an id of 16 digits, and two coordinates of at most 24 characters. */
const PIN_BYTES = 96;

/** Coordinates that end within so many decimals, as nearly all do, are written as whole numbers with a point in them. */
const DECIMALS = 7;
const SCALE = 10 ** DECIMALS;

/** The digits of 0 to 99: two at a time are half the divisions. */
const PAIRS = Uint8Array.from({ length: 200 }, (_, i) => 48 + (i % 2 === 0 ? Math.floor(i / 20) : (i >> 1) % 10));

/** Below it, integers fit operations on 32 bits. */
const SMALL = 2 ** 31;

const [ZERO, POINT, MINUS, COMMA] = [48, 46, 45, 44];
const [ID, LAT, LNG] = [Buffer.from('{"id":'), Buffer.from(',"lat":'), Buffer.from(',"lng":')];

/** What follows a pin's coordinates. `color` is JSON, and ASCII. */
export const pinEnd = (color: string): Buffer => Buffer.from(`,"statusColor":${color}}`, "latin1");

/** A piece of an array of pins: what opens it, and pins with commas between them. */
export class PinText {
  readonly #bytes: Buffer;
  readonly #opening: number;
  #length: number;

  /** Room for so many pins, each with an end of at most so many bytes. */
  constructor(opening: "[" | ",", pins: number, endBytes: number) {
    this.#bytes = Buffer.allocUnsafe(opening.length + pins * (PIN_BYTES + endBytes));
    this.#opening = this.#bytes.write(opening, "latin1");
    this.#length = this.#opening;
  }

  /** Of a finite point. */
  add(id: number, lat: number, lng: number, end: Buffer): void {
    const into = this.#bytes;
    let at = this.#length;
    if (at > this.#opening) into[at++] = COMMA;
    at = writeBytes(into, at, ID);
    at = id < SMALL ? writeInteger(into, at, id) : writeText(into, at, String(id));
    at = writeBytes(into, at, LAT);
    at = writeDegrees(into, at, lat);
    at = writeBytes(into, at, LNG);
    at = writeDegrees(into, at, lng);
    into.set(end, at);
    this.#length = at + end.length;
  }

  /** As UTF-8, ready to be sent. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/** Each of these gives where the next byte goes. */
function writeBytes(into: Buffer, from: number, bytes: Buffer): number {
  for (let i = 0; i < bytes.length; i++) into[from + i] = bytes[i] ?? 0;
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
  // Seven digits: one, and three pairs.
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

/** Not negative, below 2^31. */
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
