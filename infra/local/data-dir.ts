/** The data directory of a service: one service uses it at a time, and an incomplete first start leaves nothing in it. */
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
  /** SQLite file of the tables; undefined in memory. */
  readonly database: string | undefined;
  /** Directory of the queues and the bucket; undefined in memory. */
  readonly queues: string | undefined;
  readonly positions: string | undefined;
  readonly signingKey: string | undefined;
  /** The keys of the KMS server, without which no secret in the tables can be read. */
  readonly encryptionKeys: string | undefined;
  readonly log: string | undefined;
  readonly assembly: string;
  /** Null if each start has other paths, so that a cache would never be hit. */
  readonly compileCache: string | null;
  /** JavaScript file with the code of a function environment. */
  readonly worker: string;
  /** Marks the first start as complete: later starts keep the data. */
  markComplete(): void;
  release(): void;
}

/** Throws a LocalError if another running service uses the directory. */
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
  // After an incomplete first start, nothing has used the data yet: delete it.
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

/** A directory for the build of the functions only, removed when the service stops. */
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

/** The lock file names the process and its start time, because the system reuses process ids. */
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
        throw new LocalError(`DATA_DIR: ${path.dirname(file)} is in use by another running service (process ${pid})`);
      }
      rmSync(file, { force: true });
    }
  }
  throw new LocalError(`DATA_DIR: ${path.dirname(file)} is in use by another service that is starting`);
}

function isRunning(pid: number, start: string): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
  return startOf(pid) === start;
}

/** Start time of a process in clock ticks since boot on Linux; empty on other systems. */
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

/** The next start truncates a larger log. */
const MAX_LOG_BYTES = 20_000_000;

/** Writes the functions' output to a file, to standard error if `verbose`, or nowhere. */
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
