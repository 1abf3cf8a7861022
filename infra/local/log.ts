/** Where functions' output goes: one file in the data directory, standard error on request, or nowhere. */
import { createWriteStream, statSync } from "node:fs";

export interface Log {
  write(text: Uint8Array | string): void;
  close(): Promise<void>;
}

/** A larger log begins anew at the next start. */
const KEPT_BYTES = 20_000_000;

export function openLog(file: string | undefined, verbose: boolean): Log {
  const stream = file === undefined ? undefined : createWriteStream(file, { flags: isLarge(file) ? "w" : "a" });
  let open = true;
  return {
    write(text) {
      if (!open) return;
      stream?.write(text);
      if (verbose) process.stderr.write(text);
    },
    close() {
      open = false;
      return new Promise((resolve) => (stream === undefined ? resolve() : stream.end(() => resolve())));
    },
  };
}

const isLarge = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > KEPT_BYTES;
