/** Reads and writes the local files of the CSV command. After a crash, a file has either its old content or its complete new content. */
import { open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type * as z from "zod/mini";
import { Failed, fileFault } from "./fault.ts";

/**
 * Returns the path behind symbolic links, and the file's mode if the file exists. Throws Failed for a device, a pipe or a folder. A device
 * or a pipe would be replaced by a normal file if a new file were renamed to its path.
 */
export async function targetOf(file: string): Promise<{ readonly path: string; readonly mode: number | undefined }> {
  const existing = await stat(file).catch(() => undefined);
  if (existing === undefined) {
    await local(dirname(file), stat(dirname(file)));
    return { path: file, mode: undefined };
  }
  if (!existing.isFile()) throw new Failed(`${file} is not a regular file and cannot be replaced`);
  return { path: await local(file, realpath(file)), mode: existing.mode };
}

/**
 * Writes all bytes to a new file and then replaces `file` with it. After an error, the old file is unchanged. Throws Failed if the local
 * file system reports an error.
 */
export async function writeWhole(file: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
  const { path, mode } = await targetOf(file);
  const fresh = `${path}.${process.pid}.part`;
  try {
    const handle = await local(path, open(fresh, "w", mode));
    try {
      for await (const chunk of bytes) await local(path, handle.writeFile(chunk));
      await local(path, handle.sync());
    } finally {
      await handle.close();
    }
    await local(path, rename(fresh, path));
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/** Converts an error of the local file system (such as a full disk) to Failed, because a retry would not help. */
export const local = <T>(path: string, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw error instanceof Failed ? error : fileFault(error, path);
  });

export const writeJson = (file: string, value: unknown): Promise<void> =>
  writeWhole(file, [Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`)]);

/** Reads a journal. Returns undefined if the file does not exist. Throws Failed if its content does not match the schema. */
export async function readJson<S extends z.ZodMiniType>(file: string, schema: S): Promise<z.output<S> | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw fileFault(error, file);
  });
  try {
    return text === undefined ? undefined : schema.parse(JSON.parse(text));
  } catch {
    throw new Failed(`${file} is not a journal of this command: move it away`);
  }
}
