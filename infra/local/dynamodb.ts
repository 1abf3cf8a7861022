/** DynamoDB on this machine: the server process, which never outlives this one, or the server that DYNAMODB_ENDPOINT names. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { type AwsCall, AwsError, dynamoDbAt } from "./aws-json.ts";
import { LocalError, messageOf } from "./error.ts";

export interface DynamoDbServer {
  readonly endpoint: string;
  /** Settles with a reason if the server ends without being asked to. */
  readonly failed: Promise<string>;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 10_000;

/** A server that somebody else runs. */
export async function connectDynamoDb(endpoint: string): Promise<DynamoDbServer> {
  try {
    await dynamoDbAt(endpoint)("ListTables", {});
  } catch (error) {
    throw new LocalError(`no DynamoDB server answers at ${endpoint}: ${messageOf(error)}`, { cause: error });
  }
  return { endpoint, failed: new Promise(() => undefined), stop: () => Promise.resolve() };
}

/**
 * The shell becomes the server, after it has left behind a reader of a pipe from this process. When this process ends,
 * however it ends, the pipe closes and the reader kills the server and removes what was kept in memory.
 */
const GUARDED = '(read -r _ <&3; kill -9 $$ 2>/dev/null; rm -rf "$SCRATCH") & exec 3<&-; exec "$@"';

/** @param file SQLite file that holds the tables; undefined keeps them in memory, gone with this process. */
export async function startDynamoDb(file: string | undefined): Promise<DynamoDbServer> {
  const port = await freePort();
  const scratch = file === undefined ? memoryDir() : undefined;
  const database = file ?? (scratch === undefined ? undefined : join(scratch, "tables.db"));
  const storage = database === undefined ? [] : ["--db-path", database];
  const command = [serverBinary(), "--host", "127.0.0.1", "--port", String(port), ...storage];
  // A group of its own: Ctrl-C in a terminal is for this process, which stops the server last.
  const child = spawn("/bin/sh", ["-c", GUARDED, "sh", ...command], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    // The tables take one request at a time: a second thread of the server mostly waits for the first, and makes all of it an eighth dearer.
    env: { ...process.env, SCRATCH: scratch ?? "", TOKIO_WORKER_THREADS: "1" },
    detached: true,
  });
  let output = "";
  child.stderr?.on("data", (text: Buffer) => {
    output = (output + text.toString()).slice(-2_000);
  });
  const exited = once(child, "exit");
  let stopping = false;
  const failed = exited.then(() =>
    stopping ? new Promise<string>(() => undefined) : `the DynamoDB server ended by itself: ${output.trim()}`,
  );
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    stopping = true;
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) signalGroup(child.pid);
    await exited;
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  };
  await Promise.race([answers(dynamoDbAt(endpoint)), failed.then((reason) => Promise.reject(new LocalError(reason)))]);
  if (database !== undefined) indexStreams(database);
  return { endpoint, failed, stop };
}

/** A file system in memory, and the room that it must have: the file is then as good as the server's own memory. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 2 ** 30;

/** Undefined where there is none: the server then keeps its tables in its own memory. */
function memoryDir(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize < MEMORY_BYTES ? undefined : mkdtempSync(join(MEMORY, "canvassing-"));
  } catch {
    return undefined;
  }
}

/**
 * Without these, the server (1.2.1) looks through all records of a stream for each write and each read of it: ten times the
 * work at 10 000 records. A server that changes its tables does without them again.
 */
function indexStreams(database: string): void {
  const tables = new DatabaseSync(database);
  try {
    const sequence = "CAST(sequence_number AS INTEGER)";
    tables.exec("PRAGMA busy_timeout = 5000");
    tables.exec(`CREATE INDEX IF NOT EXISTS stream_end ON _stream_records (table_name, ${sequence})`);
    tables.exec(`CREATE INDEX IF NOT EXISTS stream_place ON _stream_records (table_name, shard_id, ${sequence})`);
  } catch (error) {
    console.warn(`the DynamoDB server's streams stay slow: ${messageOf(error)}`);
  } finally {
    tables.close();
  }
}

/** Every answered write is on disk (SQLite's journal), so the server needs no time to say goodbye. */
function signalGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}

function serverBinary(): string {
  try {
    return createRequire(import.meta.url).resolve(`@dynoxide/${process.platform}-${process.arch}/dynoxide`);
  } catch (error) {
    throw new LocalError(
      `there is no DynamoDB server for ${process.platform}-${process.arch}: set DYNAMODB_ENDPOINT to one (see README)`,
      { cause: error },
    );
  }
}

async function answers(dynamoDb: AwsCall): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      await dynamoDb("ListTables", {});
      return;
    } catch (error) {
      if (error instanceof AwsError) throw error;
      if (Date.now() > deadline) throw new LocalError("the DynamoDB server does not answer", { cause: error });
      await wait(10);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new LocalError("no free port");
  return address.port;
}
