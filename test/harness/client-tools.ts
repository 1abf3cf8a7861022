/** Installs the tools that the tests in test/clients need. The tools are too large to be dependencies of the project. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../../infra/build/bundle.ts";

const source = join(root, "test/clients");
const cache = join(root, "node_modules/.cache");

export const run = promisify(execFile);

/** Installs the tools once for each lock file. A rename at the end keeps concurrent tests from using an incomplete folder. */
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

/** Copies test/clients/calls into the folder of the tools, which its files import. Returns the path of the copy. */
export function callsIn(tools: string): string {
  const folder = join(tools, "calls");
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(source, "calls"), folder, { recursive: true });
  return folder;
}

/** What test/clients/calls/story.ts and story.py print if each request of theirs gets the expected answer. */
export const storyFacts = (email: string): object => ({
  email,
  lat: 39.7392,
  city: "Denver",
  isTagged: true,
  isListed: true,
  status: "Interested",
  notes: ["Wants a quote."],
  assignedTo: null,
  isInFeed: true,
  isSamePolygon: true,
  isRemoved: true,
});
