/** Records and texts as one compressed attribute: a write of a row is paid by the kilobyte. */
import { deflateRawSync, inflateRawSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type * as z from "zod/mini";

export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Buffer.from(zstdCompressSync(JSON.stringify(value)));

export const unpacked = <S extends z.ZodMiniType>(schema: S, bytes: Uint8Array): z.output<S> =>
  schema.parse(JSON.parse(zstdDecompressSync(bytes).toString("utf8")));

/** Smaller than the other way, without a head: for texts of a kilobyte, of which each row has one. */
export const packedText = (text: string): Uint8Array<ArrayBuffer> => Buffer.from(deflateRawSync(text, { level: 9 }));

export const unpackedText = (bytes: Uint8Array): string => inflateRawSync(bytes).toString("utf8");
