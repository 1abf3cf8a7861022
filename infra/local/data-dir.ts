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
import { codeOf, LocalError, messageOf } from "./error.ts";

export interface DataDir {
  /** The SQLite file of the tables. If it is undefined, the tables are in memory. */
  readonly database: string | undefined;
  readonly queues: string | undefined;
  readonly positions: string | undefined;
  readonly signingKey: string | undefined;
  /** The file with the keys of the local KMS server. If it is lost, stored secrets cannot be decrypted. */
  readonly encryptionKeys: string | undefined;
  readonly log: string | undefined;
  readonly assembly: string;
  /**
   * The directory in which V8 caches compiled code. It is null if the data is in memory: the paths of the bundles then change at each
   * start, so the cache would never find them.
   */
  readonly compileCache: string | null;
  readonly worker: string;
  /** Records that the first start has loaded all demo data. Without this record, the next start deletes everything and begins again. */
  markComplete(): void;
  release(): void;
}

export function openDataDir(directory: string, fresh: boolean): DataDir {
  const { at, release } = claimed(directory);
  // The first start writes the file `complete` at its end. If the file is missing, the first start was interrupted and the demo data is
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

/** Makes the directory if it does not exist, and locks it. Throws a LocalError if one of the two is impossible. */
function claimed(directory: string): { at: (name: string) => string; release: () => void } {
  try {
    makeDirectory(path.resolve(directory));
    const real = realpathSync(directory);
    const at = (name: string): string => path.join(real, name);
    return { at, release: lock(at("lock")) };
  } catch (error) {
    if (error instanceof LocalError) throw error;
    const reason = codeOf(error) ?? messageOf(error);
    throw new LocalError(`DATA_DIR: ${directory} cannot be used as a directory (${reason})`, { cause: error });
  }
}

/**
 * Makes the directory and its missing parents. The option `recursive` of `mkdirSync` would never return below `/proc`, where `mkdir` fails
 * with ENOENT although the parent exists.
 */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  makeDirectory(path.dirname(directory));
  mkdirSync(directory);
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
 * Locks the directory. The lock file contains the process id and the time at which the process started. The id alone is not enough, because
 * operating systems reuse process ids.
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
    // The second field is the program's name in parentheses. The name may contain spaces, so the line is split after the closing
    // parenthesis.
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
