/** Starts the process of `npm start`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "../../../infra/build/bundle.ts";

export const directory = mkdtempSync(path.join(tmpdir(), "canvassing-process-"));

export interface Started {
  readonly child: ChildProcess;
  output(): string;
  /** What the process has written to standard error. */
  complaints(): string;
  /** Resolves with the URL in the ready line. If the process ends before it prints this line, it rejects with the output of the process. */
  readonly ready: Promise<string>;
  readonly code: Promise<number | null>;
}

const optionsWith = (env: Record<string, string>) => ({
  cwd: root,
  env: { ...process.env, PORT: "0", DATA_DIR: directory, ...env },
});

export const start = (args: readonly string[], env: Record<string, string> = {}): Started =>
  watched(spawn(process.execPath, ["infra/local/start.ts", ...args], optionsWith(env)));

/** Starts the service by npm in a process group of its own, as a terminal does. */
export const startByNpm = (args: readonly string[], env: Record<string, string>): Started =>
  watched(spawn("npm", ["start", "--silent", "--", ...args], { ...optionsWith(env), detached: true }));

function watched(child: ChildProcess): Started {
  let output = "";
  let complaints = "";
  const code = once(child, "exit").then(([exitCode]: (number | null)[]) => exitCode ?? null);
  const ready = new Promise<string>((resolve, reject) => {
    const hear = (text: Buffer): void => {
      output += text.toString();
      const url = /^ready (\S+)$/m.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear).on("data", (text: Buffer) => {
      complaints += text.toString();
    });
    child.once("exit", () => reject(new Error(output)));
  });
  ready.catch(() => undefined);
  return { child, output: () => output, complaints: () => complaints, ready, code };
}
