/** The JSON text of map pins, digit by digit: at a million pins, each microsecond of one is a second of the request. */

/** A pin without its end: 20 bytes of names, an id of 16 digits, and two coordinates of at most 24 characters. */
const PIN_BYTES = 96;

/** Coordinates that end within so many decimals, as nearly all do, are written as whole numbers with a point in them. */
const DECIMALS = 7;
const SCALE = 10 ** DECIMALS;

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
    this.#length = writeBytes(into, at, end);
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
  let behind = size - before * SCALE;
  if (behind === 0) return at;
  into[at] = POINT;
  let last = at + DECIMALS;
  for (; behind % 10 === 0; last--) behind = (behind / 10) | 0;
  for (let digit = last; digit > at; digit--) {
    into[digit] = ZERO + (behind % 10);
    behind = (behind / 10) | 0;
  }
  return last + 1;
}

/** Not negative, below 2^31. */
function writeInteger(into: Buffer, at: number, value: number): number {
  let end = at + 1;
  for (let limit = 10; limit <= value; limit *= 10) end++;
  let rest = value | 0;
  for (let digit = end - 1; digit >= at; digit--) {
    into[digit] = ZERO + (rest % 10);
    rest = (rest / 10) | 0;
  }
  return end;
}
