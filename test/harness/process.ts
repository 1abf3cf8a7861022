/** Runs commands of the project in separate processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { root } from "../../infra/build/bundle.ts";

export interface Ended {
  /** The exit code, or null if a signal has ended the process. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Starts the program in the project's folder. With `detached`, it gets its own process group, like a command typed into a terminal. */
export function startProcess(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  detached = false,
): Running {
  const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached });
  const ended = Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]).then(
    ([[code], stdout, stderr]): Ended => ({ code: typeof code === "number" ? code : null, stdout, stderr }),
  );
  return { child, ended };
}

/** Sends SIGINT to all processes in the process group of the command, as a terminal does at Ctrl-C. */
export function pressCtrlC({ child }: Pick<Running, "child">): void {
  if (child.pid === undefined) throw new Error("the command did not start");
  process.kill(-child.pid, "SIGINT");
}
