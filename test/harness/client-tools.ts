/** Installs the tools of test/clients, which are too large for the project's own dependencies. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../infra/build/bundle.ts";

const source = join(root, "test/clients");
const cache = join(root, "node_modules/.cache");

export const run = promisify(execFile);

/**
 * Returns the folder in which the tools are installed. Later calls find the folder again, until the lock file changes. The folder is
 * renamed after the installation, so that concurrent or interrupted calls never see half of it.
 */
export async function installedTools(): Promise<string> {
  const lock = readFileSync(join(source, "package-lock.json"));
  const folder = join(cache, `client-tools-${createHash("sha256").update(lock).digest("hex").slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const unfinished = mkdtempSync(join(cache, "client-tools-unfinished-"));
  for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(source, file), join(unfinished, file));
  const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
  await run("npm", ["ci", ...options], { cwd: unfinished });
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** Copies the sources of the calls next to the installed tools, and returns their folder. */
export function callsIn(tools: string): string {
  const folder = join(tools, "calls");
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(source, "calls"), folder, { recursive: true });
  return folder;
}
