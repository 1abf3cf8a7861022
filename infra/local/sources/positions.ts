/** Stores how far each event source has processed the stream, over restarts and crashes. */
import { open, rename } from "node:fs/promises";
import * as z from "zod/mini";
import { readStored } from "../servers/stored.ts";

export type Positions = ReturnType<typeof openPositions>;

/** The stored position of a shard whose records are all processed and that gets no more records. */
export const CLOSED = "closed";

/** A key is the event source and the shard. A value is the sequence number of the last processed record, or `CLOSED`. */
const Stored = z.record(z.string(), z.string());

/** @param isNew true if the table is new. Stored positions then belong to an older stream and are ignored. */
export function openPositions(file: string | undefined, isNew: boolean) {
  const positions = new Map(isNew ? [] : Object.entries(readStored(file, Stored) ?? {}));
  let writing = Promise.resolve();
  return {
    get: (key: string) => positions.get(key),
    set(key: string, position: string): Promise<void> {
      positions.set(key, position);
      if (file === undefined) return Promise.resolve();
      writing = writing.then(() => replaceFile(file, JSON.stringify(Object.fromEntries(positions))));
      return writing;
    },
  };
}

/** Replaces the whole file: after a crash, it has the old or the new content. With the old content, the last batch is processed again. */
async function replaceFile(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.new`, "w");
  await handle.writeFile(text);
  await handle.close();
  await rename(`${file}.new`, file);
}
