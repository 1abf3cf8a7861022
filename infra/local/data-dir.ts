/** Manages the directory in which a local service stores its data. Only one service may use a directory at a time. */
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
  /** The SQLite file of the tables. If it is undefined, the tables are in memory. */
  readonly database: string | undefined;
  readonly queues: string | undefined;
  readonly positions: string | undefined;
  readonly signingKey: string | undefined;
  /** The file with the keys of the local KMS server. Without it, stored secrets cannot be decrypted. */
  readonly encryptionKeys: string | undefined;
  readonly log: string | undefined;
  readonly assembly: string;
  /**
   * The directory in which V8 caches compiled code. It is null if the data is in memory: the bundles then have new paths at each start
   * and would never be found in the cache.
   */
  readonly compileCache: string | null;
  readonly worker: string;
  /** Records that the first start has loaded all demo data. Otherwise the next start deletes everything and begins again. */
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
  // The first start writes the file `complete` at its end. If the file is missing, that start was interrupted and the demo data is
  // incomplete.
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

/** Returns a temporary directory that contains only the built functions. It is removed when the service stops. */
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

/**
 * Locks the directory. The lock file contains the process id, and the time at which the process started, because operating systems use
 * process ids again.
 */
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

/** Returns the time at which the process started, in clock ticks since the boot. Returns an empty text on systems other than Linux. */
function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses. It may contain blanks, so the line is split after it.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

export interface Log {
  write(text: Uint8Array | string): void;
  close(): Promise<void>;
}

/** At a start, a log file larger than this is emptied, because nothing else limits its size. */
const MAX_LOG_BYTES = 20_000_000;

/**
 * Opens the log for the output of the functions. The output goes to the file if there is one, and also to standard error if `verbose` is
 * true.
 */
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
