/**
 * Compresses a gzip file in parts that different runs can make. Each part is compressed separately, but all parts form one gzip member,
 * because some programs read only the first member of a file. See RFC 1951 and RFC 1952.
 */
import { constants, crc32, createDeflateRaw, type DeflateRaw } from "node:zlib";

const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
/** An empty deflate block that is marked as the last one. */
const end = Buffer.from([3, 0]);

/** The checksum and the length of the uncompressed text of all parts so far. */
export interface GzipState {
  readonly crc: number;
  readonly textBytes: number;
}

export const gzipBegin: GzipState = { crc: 0, textBytes: 0 };

export class GzipPart {
  readonly #deflate: DeflateRaw = createDeflateRaw({ level: 6 });
  readonly #chunks: Buffer[] = [];
  #crc: number;
  #textBytes: number;
  /** The number of compressed bytes so far. The compressor buffers more bytes, which `finish` adds. */
  bytes = 0;

  constructor({ crc, textBytes }: GzipState) {
    this.#crc = crc;
    this.#textBytes = textBytes;
    if (textBytes === 0) this.#push(header);
    this.#deflate.on("data", (chunk: Buffer) => this.#push(chunk));
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

  /**
   * Returns the bytes of the part. They end with a full flush, so the part ends at a whole byte and the next part refers to no earlier
   * text.
   */
  async finish(isLast: boolean): Promise<Buffer> {
    await new Promise<void>((resolve) => this.#deflate.flush(constants.Z_FULL_FLUSH, resolve));
    this.#deflate.destroy();
    if (isLast) {
      const trailer = Buffer.alloc(8);
      trailer.writeUInt32LE(this.#crc, 0);
      trailer.writeUInt32LE(this.#textBytes % 2 ** 32, 4);
      this.#push(end);
      this.#push(trailer);
    }
    return Buffer.concat(this.#chunks);
  }

  #push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }
}
