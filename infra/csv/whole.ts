/** Files that are there whole or not at all: written under another name, and given their own when nothing is missing. */
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Takes the place of what has this name. Rejects as the bytes or a part of the way do, and leaves nothing then. */
export async function writeWhole(
  file: string,
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  way: readonly Transform[],
  signal: AbortSignal,
): Promise<void> {
  const fresh = `${file}.${process.pid}.part`;
  try {
    await pipeline([Readable.from(bytes), ...way, createWriteStream(fresh, { flush: true })], { signal });
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
