/** Manages the directory in which a local service stores its data. Only one service at a time may use a directory. */
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { doneAtExit } from "../cli/command/at-exit.ts";
import { codeOf, messageOf } from "../cli/command/error.ts";
import { isRunning } from "../cli/command/signals.ts";
import { LocalError } from "./servers/error.ts";

interface DataDir {
  /** The optional paths are undefined if the service stores its data only in memory. */
  readonly database?: string;
  readonly queues?: string;
  readonly positions?: string;
  readonly signingKey?: string;
  /** The keys of the local KMS server. Without them, stored secrets cannot be decrypted. */
  readonly encryptionKeys?: string;
  readonly log?: string;
  readonly assembly: string;
  /**
   * The directory in which V8 caches compiled code, by the path of the bundle. It is null if the data is in memory, because the bundles are
   * then in a new directory at each start.
   */
  readonly compileCache: string | null;
  readonly worker: string;
  /** Records that all demo data is loaded. Without this record, the next start deletes the data and loads it again. */
  markComplete(): void;
  /** Makes the next service wait for the directory instead of failing. */
  markEnding(): void;
  /** Unlocks the directory, or removes it if it is temporary. The same happens when the process exits. */
  release(): void;
}

/** The format of the data, named after the service's first version that wrote it. Change it for data that other versions cannot read. */
const FORM = "1.1.0";

/** The content of the file `complete` until the first start has loaded all demo data. After that, the content is FORM. */
const BEGUN = "begun";

/** The files that a start deletes with `--fresh`, or if the first start was interrupted. */
const DATA = [
  ...["tables.db", "tables.db-wal", "tables.db-shm", "tables.db-journal"],
  ...["positions.json", "encryption-keys.json", "queues"],
];

/** Throws a LocalError if another program, or a service with another form of data, has written the directory. Changes nothing. */
function checkContents(directory: string, fresh: boolean): void {
  const file = path.join(directory, "complete");
  if (!existsSync(file)) {
    const foreign = DATA.find((name) => existsSync(path.join(directory, name)));
    if (foreign === undefined) return;
    throw new LocalError(
      `DATA_DIR: ${directory} contains ${foreign}, which this service has not written: set it to another directory`,
    );
  }
  if (fresh || [FORM, BEGUN].includes(readFileSync(file, "utf8"))) return;
  throw new LocalError(
    `DATA_DIR: ${directory} contains data of another version, which this version cannot read: begin anew with --fresh`,
  );
}

export async function openDataDir(directory: string, fresh: boolean): Promise<DataDir> {
  checkContents(directory, fresh);
  const { at, release, markEnding } = await claimed(directory);
  const form = at("complete");
  if (fresh || !existsSync(form) || readFileSync(form, "utf8") === BEGUN) {
    // This file is written before the data, so that the next start is allowed to remove what an interrupted start has written.
    writeFileSync(form, BEGUN);
    for (const name of DATA) rmSync(at(name), { recursive: true, force: true });
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
    markComplete: () => writeFileSync(form, FORM),
    markEnding,
    release,
  };
}

async function claimed(directory: string): Promise<Lock & { at: (name: string) => string }> {
  try {
    makeDirectory(path.resolve(directory));
    const real = realpathSync(directory);
    refuseFullDisk("DATA_DIR", real);
    const at = (name: string): string => path.join(real, name);
    return { at, ...(await lock(at("lock"))) };
  } catch (error) {
    if (error instanceof LocalError) throw error;
    const reason = codeOf(error) ?? messageOf(error);
    throw new LocalError(`DATA_DIR: ${directory} cannot be used as a directory (${reason}): set it to another one`, {
      cause: error,
    });
  }
}

/** Free bytes that a start needs. A first start writes 20 MB, and SQLite fails in many ways on a full disk. */
const FREE_BYTES = 50_000_000;

/** Throws if the disk of the directory is almost full. The error names `setting`, the environment variable that chooses the directory. */
export function refuseFullDisk(setting: string, directory: string): void {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize >= FREE_BYTES) return;
  const megabytes = (bytes: number): string => `${Math.floor(bytes / 1_000_000)} MB`;
  throw new LocalError(
    `${setting}: the disk of ${directory} has only ${megabytes(bavail * bsize)} free: free ${megabytes(FREE_BYTES)}, or set ${setting} to a directory on another disk`,
  );
}

/**
 * Creates the directory and its missing parents. `mkdirSync` with `recursive` would never return for a path below `/proc`: there, `mkdir`
 * fails with ENOENT although the parent exists, and Node.js creates the parent again and again.
 */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  makeDirectory(path.dirname(directory));
  mkdirSync(directory);
}

/** Returns a temporary directory with the build output of a service that stores its data in memory. */
export function temporaryDir(): DataDir {
  refuseFullDisk("TMPDIR", tmpdir());
  const directory = mkdtempSync(path.join(tmpdir(), "canvassing-"));
  return {
    assembly: path.join(directory, "assembly"),
    compileCache: null,
    worker: path.join(directory, "worker.mjs"),
    markComplete: () => undefined,
    markEnding: () => undefined,
    release: doneAtExit(() => rmSync(directory, { recursive: true, force: true })),
  };
}

/** Maximum time in milliseconds that a start waits for a service that is ending. An ending service needs up to about ten seconds. */
const ENDING_MS = 30_000;
const PAUSE_MS = 100;
const ENDING = "ending";

type Lock = Pick<DataDir, "release" | "markEnding">;

/**
 * Locks the directory with a file. The file contains the id of the process and the time at which it started, because operating systems
 * reuse process ids. If the service that has locked the directory is ending, waits for its end.
 */
async function lock(file: string): Promise<Lock> {
  const own = `${process.pid} ${startOf(process.pid)}`;
  let waitedMs = 0;
  for (let attempt = 0; attempt < 2; ) {
    try {
      writeFileSync(file, own, { flag: "wx" });
      const release = doneAtExit(() => rmSync(file, { force: true }));
      return { release, markEnding: () => writeFileSync(file, `${own} ${ENDING}`) };
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
    const [pid = "", start = "", state = ""] = holderIn(file).split(" ");
    if (!isRunning(Number(pid)) || startOf(Number(pid)) !== start) {
      rmSync(file, { force: true });
      attempt++;
    } else if (state === ENDING && waitedMs < ENDING_MS) {
      if (waitedMs === 0) console.error(`waiting for process ${pid}, which is ending, to release DATA_DIR`);
      await wait(PAUSE_MS);
      waitedMs += PAUSE_MS;
    } else throw inUse(file, `another running service (process ${pid})`);
  }
  throw inUse(file, "another service that is starting");
}

/** Returns the content of the lock file, or an empty string if the other service has just removed the file. */
function holderIn(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    throw error;
  }
}

const inUse = (file: string, by: string): LocalError =>
  new LocalError(`DATA_DIR: ${path.dirname(file)} is in use by ${by}: stop it, or set DATA_DIR to another directory`);

/** Returns the time at which the process started, in clock ticks since the boot. Returns an empty string on systems other than Linux. */
function startOf(pid: number): string {
  try {
    // The second field is the program's name in parentheses. It may contain spaces, so only the text after it is split.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19] ?? "";
  } catch {
    return "";
  }
}

/** A start empties a larger log file, because nothing else limits its size. */
const MAX_LOG_BYTES = 20_000_000;

export function openLog(file: string | undefined, verbose: boolean) {
  const stream = file === undefined ? undefined : createWriteStream(file, { flags: isLarge(file) ? "w" : "a" });
  let open = true;
  stream?.on("error", (error) => {
    open = false;
    console.error(`the functions' log ends: ${messageOf(error)}`);
  });
  return {
    write(text: string): void {
      if (!open) return;
      stream?.write(text);
      if (verbose) process.stderr.write(text);
    },
    close(): Promise<void> {
      open = false;
      return new Promise((resolve) => (stream === undefined ? resolve() : stream.end(() => resolve())));
    },
  };
}

const isLarge = (file: string): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES;
