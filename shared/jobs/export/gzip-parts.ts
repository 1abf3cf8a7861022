/**
 * A gzip file made in parts, any of which may be the last that one run makes: each is packed for itself, and yet the whole is one
 * member, since some readers look at no second one. RFC 1951 and 1952.
 */
import { constants, crc32, createDeflateRaw, type DeflateRaw } from "node:zlib";

const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty block that says it is the last. */
const end = Buffer.from([3, 0]);

/** Of all parts so far. */
export interface GzipState {
  readonly crc: number;
  readonly textBytes: number;
}

export const gzipBegin: GzipState = { crc: 0, textBytes: 0 };

/** One part. Its size is told as it grows. */
export class GzipPart {
  readonly #deflate: DeflateRaw = createDeflateRaw({ level: 6 });
  readonly #chunks: Buffer[] = [];
  #crc: number;
  #textBytes: number;
  /** Packed so far; what waits inside comes with the end. */
  bytes = 0;

  constructor({ crc, textBytes }: GzipState) {
    this.#crc = crc;
    this.#textBytes = textBytes;
    if (textBytes === 0) this.#keep(header);
    this.#deflate.on("data", (chunk: Buffer) => this.#keep(chunk));
  }

  get state(): GzipState {
    return { crc: this.#crc, textBytes: this.#textBytes };
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    this.#crc = crc32(bytes, this.#crc);
    this.#textBytes += bytes.length;
    await new Promise<void>((resolve, reject) => {
      this.#deflate.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** The bytes of the part. Its blocks end at a whole byte, and the next part's look back at none of them. */
  async finish(isLast: boolean): Promise<Buffer> {
    await new Promise<void>((resolve) => this.#deflate.flush(constants.Z_FULL_FLUSH, resolve));
    this.#deflate.destroy();
    if (isLast) {
      const trailer = Buffer.alloc(8);
      trailer.writeUInt32LE(this.#crc, 0);
      trailer.writeUInt32LE(this.#textBytes % 2 ** 32, 4);
      this.#keep(end);
      this.#keep(trailer);
    }
    return Buffer.concat(this.#chunks);
  }

  #keep(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }
}
