/** Runs the program of `npm run csv` in a separate process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export const startCsv = (...args: readonly string[]): Running => startCsvWith(":", ...args);

/** Starts the command after the shell command `first`, for example a `ulimit` that limits its resources. */
export function startCsvWith(first: string, ...args: readonly string[]): Running {
  const command = [process.execPath, join(import.meta.dirname, "../../infra/cli/csv.ts"), ...args];
  return started("sh", ["-c", `${first}; exec "$0" "$@"`, ...command], false);
}

/** Starts the CSV command by npm, in a process group of its own, as a terminal does. */
export const startNpmCsv = (...args: readonly string[]): Running =>
  started("npm", ["run", "--silent", "csv", "--", ...args], true);

/** Does what a terminal does at Ctrl-C: it signals each process of the group. */
export function pressCtrlC({ child }: Pick<Running, "child">): void {
  if (child.pid === undefined) throw new Error("the command did not start");
  process.kill(-child.pid, "SIGINT");
}

function started(file: string, args: readonly string[], detached: boolean): Running {
  const child = spawn(file, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TOKEN: undefined },
    cwd: join(import.meta.dirname, "../.."),
    detached,
  });
  const ended = Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]).then(
    ([[code], stdout, stderr]): Ended => ({ code: typeof code === "number" ? code : null, stdout, stderr }),
  );
  return { child, ended };
}

export const csv = (...args: readonly string[]): Promise<Ended> => startCsv(...args).ended;
