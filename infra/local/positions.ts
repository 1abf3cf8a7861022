/** How far each event source has read its stream, kept over restarts and crashes. */
import { readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import * as z from "zod/mini";
import { codeOf } from "./error.ts";

/** By `source/shard`: the sequence number of the last record that is done with. */
export interface Positions {
  get(key: string): string | undefined;
  set(key: string, sequenceNumber: string): Promise<void>;
}

const Stored = z.record(z.string(), z.string());

/**
 * @param file undefined keeps the positions in memory.
 * @param forget the table is new, and with it the stream.
 */
export function openPositions(file: string | undefined, forget: boolean): Positions {
  const positions = new Map(file === undefined || forget ? [] : Object.entries(read(file)));
  let writing = Promise.resolve();
  return {
    get: (key) => positions.get(key),
    set(key, sequenceNumber) {
      positions.set(key, sequenceNumber);
      if (file === undefined) return Promise.resolve();
      writing = writing.then(() => write(file, JSON.stringify(Object.fromEntries(positions))));
      return writing;
    },
  };
}

function read(file: string): Record<string, string> {
  try {
    return z.parse(Stored, JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw error;
  }
}

/** A crash leaves the old file or the new one, never a part: at worst a batch is repeated. */
async function write(file: string, text: string): Promise<void> {
  const handle = await open(`${file}.new`, "w");
  await handle.writeFile(text);
  await handle.close();
  await rename(`${file}.new`, file);
}
