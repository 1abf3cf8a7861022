/** Manages the data directory of a local service. Only one service may use it at a time. */
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { codeOf, LocalError } from "./error.ts";

export interface DataDir {
  /** The SQLite file of the tables. Undefined: the tables are in memory. */
  readonly database: string | undefined;
  readonly queues: string | undefined;
  readonly positions: string | undefined;
  readonly signingKey: string | undefined;
  /** The file with the keys of the KMS server. Without them no stored secret can be decrypted. */
  readonly encryptionKeys: string | undefined;
  readonly log: string | undefined;
  readonly assembly: string;
  /**
   * The directory of V8's compile cache. Null with a temporary directory, whose bundles have new paths at each start and would never be
   * found in the cache.
   */
  readonly compileCache: string | null;
  /** The JavaScript file that each worker thread of a function runs. */
  readonly worker: string;
  /** Marks the demo data as complete. Without the mark the next start deletes everything. */
  markComplete(): void;
  release(): void;
}

export function openDataDir(directory: string, fresh: boolean): DataDir {
  try {
    mkdirSync(directory, { recursive: true });
  } catch (error) {
    throw new LocalError(`DATA_DIR: ${directory} cannot be used as a directory (${codeOf(error) ?? "unknown"})`, {
      cause: error,
    });
  }
  const at = (name: string): string => path.join(realpathSync(directory), name);
  const release = lock(at("lock"));
  // The file `complete` is written after the first start. Without it that start was interrupted, and the demo data is incomplete.
  if (fresh || !existsSync(at("complete"))) {
    for (const name of [
      "complete",
      "tables.db",
      "tables.db-wal",
      "tables.db-shm",
      "tables.db-journal",
      "positions.json",
      "encryption-keys.json",
      "queues",
    ]) {
      rmSync(at(name), { recursive: true, force: true });
    }
  }
  return {
    database: at("tables.db"),
    queues: at("queues"),
    positions: at("positions.json"),
    signingKey: at("signing-key.json"),
    encryptionKeys: at("encryption-keys.json"),
    log: at("service.log"),
    assembly: at("assembly"),
    compileCache: at("compile-cache"),
    worker: at("worker.mjs"),
    markComplete: () => writeFileSync(at("complete"), ""),
    release,
  };
}

/** Returns a temporary directory for the built functions only. It is removed when the service stops. */
export function temporaryDir(): DataDir {
  const directory = mkdtempSync(path.join(tmpdir(), "canvassing-"));
  return {
    database: undefined,
    queues: undefined,
    positions: undefined,
    signingKey: undefined,
    encryptionKeys: undefined,
    log: undefined,
    assembly: path.join(directory, "assembly"),
    compileCache: null,
    worker: path.join(directory, "worker.mjs"),
    markComplete: () => undefined,
    release: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Locks the directory. The lock file contains the process id and the start time of the process, because operating systems reuse ids. */
function lock(file: string): () => void {
  const own = `${process.pid} ${startOf(process.pid)}`;
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, own, { flag: "wx" });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      const holder = readFileSync(file, "utf8");
      const [pid = "", start = ""] = holder.split(" ");
      if (isRunning(Number(pid), start)) {
        throw inUse(file, `another running service (process ${pid})`);
      }
      rmSync(file, { force: true });
    }
  }
  throw inUse(file, "another service that is starting");
}

const inUse = (file: string, by: string): LocalError =>
  new LocalError(`DATA_DIR: ${path.dirname(file)} is in use by ${by}: stop it, or set DATA_DIR to another directory`);

function isRunning(pid: number, start: string): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
  return startOf(pid) === start;
}

/** Returns when the process started, in clock ticks since boot. Returns an empty text on systems other than Linux. */
function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses, which may contain blanks.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

export interface Log {
  write(text: Uint8Array | string): void;
  close(): Promise<void>;
}

/** A start empties a larger log file, because nothing else limits its size. */
const MAX_LOG_BYTES = 20_000_000;

/** Opens the log for the functions' output. The output goes to the file, to standard error if `verbose` is true, or nowhere. */
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

const isLarge = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES;
