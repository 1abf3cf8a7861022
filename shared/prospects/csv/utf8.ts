/** Counts the valid and invalid bytes of a text in UTF-8 (Table 3-7 of the Unicode Standard), wherever its chunks are cut. */

/** The bytes of U+FFFD, which a decoder also writes for invalid bytes. */
const REPLACEMENT = [0xef, 0xbf, 0xbd] as const;

export class Utf8Counts {
  /** Valid characters of several bytes. */
  characters = 0;
  /** Bytes that belong to no valid character. */
  invalid = 0;
  /** Valid characters U+FFFD before the first invalid byte. */
  replacements = 0;
  /** The beginning of a character that the next chunk may complete. */
  #rest: Uint8Array = new Uint8Array();

  add(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let position = 0;
    for (;;) {
      let lead = bytes[position];
      while (lead !== undefined && lead < 0x80) lead = bytes[++position];
      if (lead === undefined) break;
      const length = lengthAt(bytes, position, lead);
      if (length === undefined) break;
      if (length === 0) {
        this.invalid++;
        position++;
        continue;
      }
      this.characters++;
      if (this.invalid === 0 && REPLACEMENT.every((byte, i) => bytes[position + i] === byte)) this.replacements++;
      position += length;
    }
    this.#rest = bytes.slice(position);
  }

  /** Call it after the last chunk. */
  end(): void {
    this.invalid += this.#rest.length;
    this.#rest = new Uint8Array();
  }
}

/** Returns the length of the character that begins here with a byte above 0x7F, 0 if it is invalid, or undefined if the chunk ends in it. */
function lengthAt(bytes: Uint8Array, at: number, lead: number): number | undefined {
  const length = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) return undefined;
    const [low, high] = i === 1 ? secondByte(lead) : [0x80, 0xbf];
    if (byte < low || byte > high) return 0;
  }
  return length;
}

function secondByte(lead: number): readonly [low: number, high: number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  return lead === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
}
