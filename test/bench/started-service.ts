/** Starts the local service in a separate process. It keeps its data in memory. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface StartedService {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startService(
  options: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<StartedService> {
  const start = join(import.meta.dirname, "../../infra/local/start.ts");
  const child = spawn(process.execPath, [start, "--memory", ...options], {
    env: { ...process.env, PORT: "0", HOST: "127.0.0.1", ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  for await (const line of createInterface(child.stdout)) {
    const url = /^ready (\S+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    const stop = async (): Promise<void> => {
      child.kill("SIGTERM");
      await ended;
    };
    return { url, stop };
  }
  throw new Error("the local service did not start");
}
