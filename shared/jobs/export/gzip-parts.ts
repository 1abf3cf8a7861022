/** Compresses a gzip file in parts, which together form one gzip member (RFC 1952), because some programs read only the first member. */
import { constants, crc32, createDeflateRaw, type DeflateRaw } from "node:zlib";
import { GZIP_HEADER, gzipEnd } from "#shared/http/gzip.ts";

/** The CRC-32 and the length of the text before compression, up to now. The end of a gzip file contains both. */
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
  /** Bytes of the part so far. The compressor may hold more, which `finish` adds. */
  bytes = 0;

  constructor({ crc, textBytes }: GzipState) {
    this.#crc = crc;
    this.#textBytes = textBytes;
    if (textBytes === 0) this.#push(GZIP_HEADER);
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

  /** A full flush makes the part end at a byte boundary, and lets the next part begin with a new compressor. */
  async finish(isLast: boolean): Promise<Buffer> {
    await new Promise<void>((resolve) => this.#deflate.flush(constants.Z_FULL_FLUSH, resolve));
    this.#deflate.destroy();
    if (isLast) this.#push(gzipEnd(this.#crc, this.#textBytes));
    return Buffer.concat(this.#chunks);
  }

  #push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.bytes += chunk.length;
  }
}
