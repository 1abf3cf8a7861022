/**
 * Stores many small records as one compressed attribute. DynamoDB charges at least one kilobyte for each written row, so separate rows
 * would cost more.
 */
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type * as z from "zod/mini";

export const packed = (value: unknown): Uint8Array<ArrayBuffer> => Buffer.from(zstdCompressSync(JSON.stringify(value)));

export const unpacked = <S extends z.ZodMiniType>(schema: S, bytes: Uint8Array): z.output<S> =>
  schema.parse(JSON.parse(zstdDecompressSync(bytes).toString("utf8")));
