/** Files that are there whole or not at all: written under another name, and given their own when nothing is missing. */
import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable, type Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failed, messageOf } from "./fault.ts";

interface Place {
  /** Behind a link, what it leads to. */
  readonly path: string;
  /** Who may read and write what stands there; undefined where nothing does. */
  readonly mode: number | undefined;
}

/** Where a file of this name goes. Throws Failed where none can: a device, for one, would be gone for good. */
export async function placeOf(file: string): Promise<Place> {
  const standing = await stat(file).catch(() => undefined);
  if (standing === undefined) {
    await here(stat(dirname(file)));
    return { path: file, mode: undefined };
  }
  if (!standing.isFile()) throw new Failed(`${file} is no regular file, and none can take its place`);
  return { path: await here(realpath(file)), mode: standing.mode };
}

/**
 * Takes the place of what has this name. Rejects as the bytes or a part of the way do, and leaves nothing then. Throws Failed for
 * what this machine refuses.
 */
export async function writeWhole(
  file: string,
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  way: readonly Transform[],
  signal: AbortSignal,
): Promise<void> {
  const { path, mode } = await placeOf(file);
  const fresh = `${path}.${process.pid}.part`;
  try {
    const handle = await here(open(fresh, "w", mode));
    try {
      await pipeline([Readable.from(bytes), ...way, into(handle)], { signal });
      await here(handle.sync());
    } finally {
      await handle.close();
    }
    await here(rename(fresh, path));
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

const into = (handle: FileHandle): Writable =>
  new Writable({
    write(chunk: Buffer, _, done) {
      here(handle.writeFile(chunk)).then(() => done(), done);
    },
  });

/** A disk that is full, or a folder that is not there, is no broken line: nothing is tried again. */
const here = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw new Failed(messageOf(error));
  });
