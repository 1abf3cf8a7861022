/** Starts the bundled DynamoDB-compatible server (`@dynoxide/linux-x64`), or connects to the server at DYNAMODB_ENDPOINT. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { DynamoDBServiceException, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { doneAtExit } from "../../cli/command/at-exit.ts";
import { messageOf } from "../../cli/command/error.ts";
import { dynamoDbAt } from "../servers/clients.ts";
import { LocalError } from "../servers/error.ts";

export interface DynamoDbServer {
  readonly endpoint: string;
  /** Resolves with the reason if the server process ends unexpectedly. */
  readonly failed: Promise<string>;
  /** A number that differs after each change of a table. It is undefined if the server does not show its changes. */
  readonly version: () => number | undefined;
  stop(): Promise<void>;
}

/** The wait for the bundled server. It usually answers after a few milliseconds, but a busy machine may not run it for seconds. */
const START = { limitMs: 60_000, pauseMs: 10 } as const;
/** The wait for a server that the user has started with Docker or Java. It answers only after several seconds. */
const CONNECT = { limitMs: 15_000, pauseMs: 250 } as const;

/** Connects to a server that another program has started, or is starting. Throws a LocalError if it does not answer in time. */
export async function connectDynamoDb(endpoint: string, limitMs: number = CONNECT.limitMs): Promise<DynamoDbServer> {
  const onWait = (): void => console.error(`waiting for the DynamoDB server at ${endpoint}`);
  try {
    await untilItAnswers(endpoint, { ...CONNECT, limitMs, onWait });
  } catch (error) {
    throw new LocalError(`no DynamoDB server answers at ${endpoint}: ${messageOf(error)}`, { cause: error });
  }
  return { endpoint, failed: new Promise(() => undefined), version: () => undefined, stop: () => Promise.resolve() };
}

/**
 * Runs the DynamoDB server, and a background process that waits on a pipe from this Node.js process. The pipe closes when this process
 * ends, even by SIGKILL. The background process then kills the server and removes `$SCRATCH`, the directory of in-memory tables.
 */
const GUARDED = '(read -r _ <&3; kill -9 $$ 2>/dev/null; rm -rf "$SCRATCH") & exec 3<&-; exec "$@"';

/**
 * Returns the server, and in `database` the SQLite file of its tables, which is undefined if the server itself holds them in memory.
 * @param file the SQLite file in which the tables stay. If it is undefined, the tables are lost when the server ends.
 */
export async function startDynamoDb(
  file: string | undefined,
): Promise<DynamoDbServer & { readonly database: string | undefined }> {
  const port = await freePort();
  const scratch = file === undefined ? memoryDir() : undefined;
  const database = file ?? (scratch === undefined ? undefined : join(scratch, "tables.db"));
  const storage = database === undefined ? [] : ["--db-path", database];
  const command = [serverBinary(), "--host", "127.0.0.1", "--port", String(port), ...storage];
  // In a process group of its own, the server does not get the SIGINT of Ctrl-C, which would end it before this process has finished.
  const child = spawn("/bin/sh", ["-c", GUARDED, "sh", ...command], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    // One thread is enough, because the server executes one request at a time.
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
  const end = doneAtExit(() => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) killGroup(child.pid);
    // The server may still create a file while the directory is removed. The removal then fails and is repeated.
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  });
  await Promise.race([
    untilItAnswers(endpoint, START),
    failed.then((reason) => Promise.reject(new LocalError(reason))),
  ]);
  if (database !== undefined) indexStreams(database);
  const changes = database === undefined ? undefined : watchChanges(database);
  const stop = async (): Promise<void> => {
    stopping = true;
    changes?.close();
    end();
    await exited;
  };
  return { endpoint, failed, version: () => changes?.version(), stop, database };
}

/** Notices writes: SQLite counts the transactions of other connections. Reading this number is a hundred times as fast as a request. */
function watchChanges(database: string): { version(): number; close(): void } {
  const tables = new DatabaseSync(database, { readOnly: true });
  const statement = tables.prepare("PRAGMA data_version");
  return { version: () => Number(statement.get()?.data_version), close: () => tables.close() };
}

/** A file system in memory, because `indexStreams` can add indexes only to a file. It is as fast as the server's own memory. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 2 ** 30;

/** Returns a new directory in memory, or undefined if this machine has no such file system or less than `MEMORY_BYTES` free. */
function memoryDir(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize < MEMORY_BYTES ? undefined : mkdtempSync(join(MEMORY, "canvassing-"));
  } catch {
    return undefined;
  }
}

/**
 * Adds indexes to the stream records. Without them, version 1.2.1 of the server scans all stream records at each write and read, which is
 * ten times as slow with 10 000 records. A failure causes only a warning, because another version may have other tables.
 */
function indexStreams(database: string): void {
  const tables = new DatabaseSync(database);
  try {
    const sequence = "CAST(sequence_number AS INTEGER)";
    tables.exec("PRAGMA busy_timeout = 5000");
    tables.exec(`CREATE INDEX IF NOT EXISTS stream_end ON _stream_records (table_name, ${sequence})`);
    tables.exec(`CREATE INDEX IF NOT EXISTS stream_place ON _stream_records (table_name, shard_id, ${sequence})`);
  } catch (error) {
    console.warn(`the streams of the DynamoDB server are slow: ${messageOf(error)}`);
  } finally {
    tables.close();
  }
}

/** Kills the server with SIGKILL. No data is lost, because SQLite's journal contains each write that the server has acknowledged. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group no longer exists, because the server has already ended.
  }
}

/** Returns the server's path. Throws a LocalError with instructions if npm has no package of it for this machine, or did not install it. */
export function serverBinary(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`@dynoxide/${platform}/dynoxide`);
  } catch (error) {
    const missing =
      platform === BUNDLED_PLATFORM
        ? `The table engine is missing, because npm did not install the optional package @dynoxide/${platform}. Run npm ci --include=optional.`
        : `The table engine is missing, because npm has no package of it for ${platform}.`;
    throw new LocalError(`${missing}\n${INSTEAD}`, { cause: error });
  }
}

/** The only platform for which npm has a package of the server. */
const BUNDLED_PLATFORM = "linux-x64";

/** A hint in errors. Without `-sharedDb`, DynamoDB Local has separate tables for each access key, and each function has its own key. */
const INSTEAD = `Start DynamoDB Local or another DynamoDB-compatible server instead, and set DYNAMODB_ENDPOINT to its address, for example:
docker run --rm --detach --publish 8000:8000 amazon/dynamodb-local -jar DynamoDBLocal.jar -sharedDb -inMemory && DYNAMODB_ENDPOINT=http://127.0.0.1:8000 npm start`;

interface Patience {
  readonly limitMs: number;
  readonly pauseMs: number;
  readonly onWait?: () => void;
}

/** Throws the error of the last attempt if the server does not answer within the limit, or if it answers with an error. */
async function untilItAnswers(endpoint: string, { limitMs, pauseMs, onWait }: Patience): Promise<void> {
  const dynamoDb = dynamoDbAt(endpoint, 1);
  const deadline = Date.now() + limitMs;
  for (let attempt = 1; ; attempt++) {
    try {
      await dynamoDb.send(new ListTablesCommand({}));
      return;
    } catch (error) {
      if (error instanceof DynamoDBServiceException) throw error;
      if (Date.now() > deadline) throw new LocalError(messageOf(error), { cause: error });
      if (attempt === 1) onWait?.();
      await wait(pauseMs);
    }
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new LocalError("no free port");
  return address.port;
}
