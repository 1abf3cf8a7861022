/** Extracts the code of the last release from the project's git history. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../infra/build/bundle.ts";
import { lastRelease } from "../../infra/release/releases.ts";

/** The files and folders that the local service needs. Only they are extracted. */
const PARTS = [
  "functions",
  "shared",
  "infra",
  "docs/openapi.json",
  "docs/openapi-3.0.json",
  "package.json",
  "cdk.json",
];

/** Returns true if this clone contains the commit of the last release. A clone without history does not. */
export function hasHistory(): boolean {
  try {
    execFileSync("git", ["cat-file", "-e", `${lastRelease().commit}^{commit}`], { cwd: root, stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the folder with the code of the last release, and extracts the code first if the folder is missing. The folder is inside the
 * project, so that the code finds the packages of the project.
 */
export function codeOfLastRelease(): string {
  const { version, commit } = lastRelease();
  const folder = join(root, "build/releases", `${version}-${commit.slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(join(root, "build/releases"), { recursive: true });
  const unfinished = mkdtempSync(join(root, "build/releases/unfinished-"));
  const archive = execFileSync("git", ["archive", commit, ...PARTS], { cwd: root, maxBuffer: 100_000_000 });
  execFileSync("tar", ["-x", "-C", unfinished], { input: archive });
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
