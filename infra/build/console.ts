/** Builds the console into console/dist if its sources have changed since the last build. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { doneAtExit } from "../cli/command/at-exit.ts";
import { optionsOf, runCommand } from "../cli/command/options.ts";
import { isRunning } from "../cli/command/signals.ts";
import { root } from "./bundle.ts";
import { cacheKey } from "./bundle-cache.ts";

const folder = join(root, "console");
/** CloudFront or the local service sends the files in this directory to browsers. */
export const consoleDirectory = join(folder, "dist");
/** The hash of the sources of the last build. The file is not in `dist`, because a deployment publishes all files in `dist`. */
const STATE = join(folder, "dist.sha256");
/** The sources of a build. The console imports only some files of `shared`, but a change of another file also causes a build. */
const SOURCES = ["console", "docs/client/api.ts", "docs/client/client.ts", "package-lock.json", "shared"];

/** Builds the console if its sources have changed since the last build. Otherwise returns false. */
export async function buildConsole(): Promise<boolean> {
  removeLeftovers();
  const hash = cacheKey([], SOURCES);
  if (isBuilt(hash)) return false;
  const made = `${consoleDirectory}-${process.pid}`;
  await runVite(made);
  // If another process has built the same sources meanwhile, keep its files, because a browser may be loading them.
  if (isBuilt(hash)) rmSync(made, { recursive: true, force: true });
  else publish(made);
  writeFileSync(STATE, hash);
  return true;
}

/**
 * Runs Vite in a child process with NODE_ENV=production. With the NODE_ENV=test of a test run, Vite would bundle the larger and slower
 * development build of React.
 */
async function runVite(outDir: string): Promise<void> {
  // If the folder cannot be written, fail here, because Vite would print a stack trace.
  mkdirSync(outDir, { recursive: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Node.js itself loads Vite's configuration. By default, Vite would write a bundle of it into node_modules.
  const options = ["--outDir", outDir, "--emptyOutDir", "--configLoader", "native"];
  const child = execFile(
    process.execPath,
    [join(root, "node_modules/vite/bin/vite.js"), "build", folder, ...options],
    { env: { ...process.env, NODE_ENV: "production" } },
    (error, _, stderr) => {
      if (error === null) resolve();
      else reject(new Error(/^\w*Error: E[A-Z]+: .*/m.exec(stderr)?.[0] ?? (stderr.trim() || error.message)));
    },
  );
  const end = doneAtExit(() => child.kill());
  try {
    await promise;
  } catch (error) {
    rmSync(outDir, { recursive: true, force: true });
    throw error;
  } finally {
    end();
  }
}

const isBuilt = (hash: string): boolean =>
  existsSync(join(consoleDirectory, "index.html")) && existsSync(STATE) && readFileSync(STATE, "utf8") === hash;

/** Removes the files of builds whose process was killed. */
function removeLeftovers(): void {
  for (const name of readdirSync(folder)) {
    const pid = /^dist-(\d+)(?:-old)?$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Renames whole directories instead of copying files, so that a running service never sends files of an incomplete build. */
function publish(made: string): void {
  const old = `${made}-old`;
  if (existsSync(consoleDirectory)) renameSync(consoleDirectory, old);
  renameSync(made, consoleDirectory);
  rmSync(old, { recursive: true, force: true });
}

const usage = `npm run console
    builds the console into console/dist, if its sources have changed since the last build
exit code 0: success, 1: failure, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<undefined> {
  optionsOf(args, {}, usage);
  const startedAt = performance.now();
  const built = await buildConsole();
  console.log(built ? `built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s` : "the build is current");
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
