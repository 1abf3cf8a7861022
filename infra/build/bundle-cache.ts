/**
 * Caches function bundles between starts of the local service, because making them takes two thirds of a start. A deployment always makes
 * its bundles anew.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { bundle, root } from "./bundle.ts";
import type { LocalSignIn } from "./docs-page.ts";

/** The cache is below `node_modules`, which is not part of the repository. `npm ci` empties it. */
const CACHE = join(root, "node_modules/.cache/canvassing/bundles");

/** The files that determine the content of the bundles. The lock file names the installed packages. */
const SOURCES = ["package-lock.json", "docs/openapi.json", "docs/openapi-3.0.json", "shared", "functions", "infra"];

/** Number of cached sets of bundles. A set has about 30 MB. Four sets are enough for switching between a few branches. */
const KEPT = 4;

/** Does the same as `bundle()`, but copies the bundles from the cache if their sources have not changed. */
export async function cachedBundle(
  files: readonly string[],
  outDir: string,
  options: { readonly signIn?: LocalSignIn } = {},
  cache: string = CACHE,
): Promise<void> {
  const entry = join(cache, keyOf([...files, JSON.stringify(options)]));
  if (!existsSync(entry)) {
    const made = `${entry}-${process.pid}`;
    await bundle(files, made, options);
    publish(made, entry);
    removeOldEntries(cache);
  }
  // The cache keeps the newest entries, so a used entry gets a new time.
  const now = new Date();
  utimesSync(entry, now, now);
  rmSync(outDir, { recursive: true, force: true });
  cpSync(entry, outDir, { recursive: true });
}

/** Makes an entry visible only when it is complete, because several services may start at the same time. */
function publish(made: string, entry: string): void {
  try {
    renameSync(made, entry);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(entry)) throw error;
  }
}

function removeOldEntries(cache: string): void {
  const entries = readdirSync(cache).map((name) => {
    const path = join(cache, name);
    return { path, usedAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  const old = entries.toSorted((a, b) => b.usedAt - a.usedAt).slice(KEPT);
  for (const { path } of old) rmSync(path, { recursive: true, force: true });
}

function keyOf(settings: readonly string[]): string {
  const hash = createHash("sha256");
  for (const setting of settings) hash.update(`${setting}\n`);
  for (const source of SOURCES) addTo(hash, join(root, source), source);
  return hash.digest("hex").slice(0, 32);
}

function addTo(hash: ReturnType<typeof createHash>, path: string, name: string): void {
  if (!statSync(path).isDirectory()) {
    hash.update(`${name}\n`).update(createHash("sha256").update(readFileSync(path)).digest());
    return;
  }
  for (const child of readdirSync(path).toSorted()) addTo(hash, join(path, child), `${name}/${child}`);
}
