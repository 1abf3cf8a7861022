/** The directory that a service keeps its data in: one service at a time, and nothing in it that was never finished. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { codeOf, LocalError } from "./error.ts";

export interface DataDir {
  /** SQLite file of the tables; undefined in memory. */
  readonly database: string | undefined;
  readonly positions: string | undefined;
  readonly signingKey: string | undefined;
  /** Without them no secret in the tables can be read. */
  readonly encryptionKeys: string | undefined;
  readonly log: string | undefined;
  readonly assembly: string;
  /** Null where every start has other paths: nothing would be found again. */
  readonly compileCache: string | null;
  /** Where the code of a function environment is written as JavaScript. */
  readonly worker: string;
  /** From now on the data is kept: everything that belongs to a new directory is in it. */
  markComplete(): void;
  release(): void;
}

/** Throws a LocalError when another running service uses the directory. */
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
  // A start that was broken off before it was ready has told nobody of its data: it begins anew.
  if (fresh || !existsSync(at("complete"))) {
    for (const name of [
      "complete",
      "tables.db",
      "tables.db-wal",
      "tables.db-shm",
      "tables.db-journal",
      "positions.json",
      "encryption-keys.json",
    ]) {
      rmSync(at(name), { force: true });
    }
  }
  return {
    database: at("tables.db"),
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

/** Keeps nothing but what the functions are built into, and that only while the service runs. */
export function temporaryDir(): DataDir {
  const directory = mkdtempSync(path.join(tmpdir(), "canvassing-"));
  return {
    database: undefined,
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

/** The lock names its process and when that began: a number alone may have gone to another process since. */
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
        throw new LocalError(`${path.dirname(file)} is in use by another running service (process ${pid})`);
      }
      rmSync(file, { force: true });
    }
  }
  throw new LocalError(`${path.dirname(file)} is in use by another service that is starting`);
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

/** Start time of a process in clock ticks since boot, where the system tells it (Linux); the same text elsewhere. */
function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses, which may hold blanks.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}
