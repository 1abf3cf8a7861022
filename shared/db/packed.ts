/** Stores many small records as one compressed attribute, because DynamoDB charges at least one kilobyte for each written row. */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type * as z from "zod/mini";

export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Buffer.from(zstdCompressSync(JSON.stringify(value)));

export const unpacked = <S extends z.ZodMiniType>(schema: S, bytes: Uint8Array): z.output<S> =>
  schema.parse(JSON.parse(zstdDecompressSync(bytes).toString("utf8")));

/** The first four bytes of each compressed value (RFC 8878). */
const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

export const isPacked = (bytes: Uint8Array): boolean => MAGIC.equals(bytes.subarray(0, MAGIC.length));
