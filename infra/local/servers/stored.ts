/** Reads the small JSON files that the local servers keep in the data directory. */
import { existsSync, readFileSync } from "node:fs";
import * as z from "zod/mini";

/** Reads a stored file. Returns undefined if it does not exist, or if the data is in memory only and has no file. */
export function readStored<S extends z.ZodMiniType>(file: string | undefined, schema: S): z.output<S> | undefined {
  if (file === undefined || !existsSync(file)) return undefined;
  return z.parse(schema, JSON.parse(readFileSync(file, "utf8")));
}
