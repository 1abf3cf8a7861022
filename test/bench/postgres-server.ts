/** Starts a temporary Postgres server. Its data and its Unix socket are in one temporary directory. */
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

export interface Postgres {
  readonly version: string;
  /** Runs the SQL and returns the printed lines. With `timing`, a line such as `Time: 1.234 ms` follows each statement's result. */
  run(sql: string, timing?: boolean): Promise<string[]>;
  copy(table: string, lines: Iterable<string>): Promise<void>;
  stop(): void;
}

/** Settings of the server. Postgres does not wait until its writes are on the disk (`fsync=off`), because the data is temporary. */
const settings = [
  "shared_buffers=512MB",
  "work_mem=64MB",
  "maintenance_work_mem=512MB",
  "effective_cache_size=4GB",
  "random_page_cost=1.1",
  "max_wal_size=4GB",
  "fsync=off",
  "full_page_writes=off",
  "jit=off",
  "listen_addresses=",
];

export async function startPostgres(): Promise<Postgres | undefined> {
  const [control, psql] = ["pg_ctl", "psql"].map(binary);
  if (control === undefined || psql === undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), "canvassing-postgres-"));
  const owner = unprivileged();
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  const run = (...args: string[]) =>
    execFileSync(control, ["-D", join(directory, "data"), ...args], { ...owner, cwd: directory, stdio: "ignore" });
  run("initdb", "-o", "-U bench -A trust -E UTF8 --locale=C");
  const flags = settings.map((setting) => `-c ${setting}`).join(" ");
  run("start", "-w", "-l", join(directory, "log"), "-o", `-k ${directory} ${flags}`);
  const stop = (): void => {
    run("stop", "-m", "immediate");
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      stop();
      process.exit(1);
    });
  }
  const connected = client(psql, ["-h", directory, "-U", "bench", "-d", "postgres", "-AtqX", "-v", "ON_ERROR_STOP=1"]);
  return { version: (await connected.run("show server_version;"))[0] ?? "", ...connected, stop };
}

function client(psql: string, connection: readonly string[]): Pick<Postgres, "run" | "copy"> {
  return {
    run: async (sql, timing = false) => {
      const session = promisify(execFile)(psql, [...connection, "-f", "-"], { maxBuffer: 2 ** 28 });
      session.child.stdin?.end(`${timing ? "\\timing on\n" : ""}${sql}\n`);
      return (await session).stdout.split("\n");
    },
    copy: async (table, lines) => {
      const session = spawn(psql, [...connection, "-c", `copy ${table} from stdin`], {
        stdio: ["pipe", "ignore", "inherit"],
      });
      const ended = once(session, "exit");
      await pipeline(Readable.from(lines), session.stdin);
      const [code] = await ended;
      if (code !== 0) throw new Error(`Postgres does not take the rows of ${table}`);
    },
  };
}

/** Returns the path of a Postgres program: of the newest version from a Debian package, or otherwise of the version in PATH. */
function binary(name: string): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const places = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return places.map((place) => join(place, name)).find((file) => existsSync(file));
}

/** Returns another user for Postgres if this process runs as root, because Postgres refuses to run as root. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const user of ["postgres", "nobody"]) {
    const [uid, gid] = ["-u", "-g"].map((flag) =>
      Number(spawnSync("id", [flag, user]).stdout.toString() || Number.NaN),
    );
    if (uid !== undefined && gid !== undefined && uid > 0) return { uid, gid };
  }
  throw new Error("there is no user to run Postgres as");
}
