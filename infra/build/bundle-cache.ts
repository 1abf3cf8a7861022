/** Caches function bundles between starts of the local service, because bundling takes seconds. A deployment never uses this cache. */
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod/mini";
import type { Bundle } from "./bundle.ts";
import { type LocalSignIn, writeDocsPage } from "./docs-page.ts";
import { inOwnProcess } from "./own-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The folder of all build caches, which `npm ci` deletes. CI sets `CI_CACHES` to the cache folder of its own checkout. A test that clones
 * the repository then copies the bundles that CI has already built from the same sources.
 */
export const CACHES = process.env.CI_CACHES ?? join(root, "node_modules/.cache/canvassing");

const BUILD = fileURLToPath(new URL("bundle-process.ts", import.meta.url));

/** What the bundles are made from. package-lock.json stands for the installed packages, whose versions it determines. */
const SOURCES = ["package-lock.json", "docs/openapi.json", "docs/openapi-3.0.json", "shared", "functions", "infra"];

/** Number of cached sets of bundles. A set is up to 36 MB large. Four sets are enough for switching between a few branches. */
const KEPT = 4;

export interface BundleOptions {
  readonly signIn?: LocalSignIn;
  /** If true, modules that several functions import are in shared files (`bundleShared`). */
  readonly isShared?: boolean;
}

const Bundles = z.array(z.tuple([z.string(), z.object({ bytes: z.number(), modules: z.array(z.string()) })]));

/**
 * Does the same as `bundle()` or `bundleShared()`, but copies the bundles from the cache if their sources have not changed. Writes the page
 * of the API reference each time, because its guides and demo users are not among these sources.
 * @param caches the folder of all build caches
 */
export async function cachedBundle(
  files: readonly string[],
  outDir: string,
  { signIn, isShared = false }: BundleOptions = {},
  caches: string = CACHES,
): Promise<Map<string, Bundle>> {
  const entry = join(caches, "bundles", cacheKey([...files, isShared ? "shared" : "deployed"]));
  if (!existsSync(entry)) await built(entry, files, isShared);
  markUsed(entry);
  rmSync(outDir, { recursive: true, force: true });
  cpSync(join(entry, "code"), outDir, { recursive: true });
  writeDocsPage(outDir, signIn);
  return new Map(z.parse(Bundles, JSON.parse(readFileSync(join(entry, "bundles.json"), "utf8"))));
}

/** The builds that are running. Two local services that start in this process at the same time wait for the same build. */
const building = new Map<string, Promise<void>>();

function built(...[entry, files, isShared]: Parameters<typeof addEntry>): Promise<void> {
  const build = building.get(entry) ?? addEntry(entry, files, isShared).finally(() => building.delete(entry));
  building.set(entry, build);
  return build;
}

async function addEntry(entry: string, files: readonly string[], isShared: boolean): Promise<void> {
  const made = `${entry}-${process.pid}`;
  try {
    // If the directory cannot be created, fail before the build, which takes seconds.
    mkdirSync(made, { recursive: true });
    const bundles = await inOwnProcess(BUILD, { files, outDir: join(made, "code"), isShared });
    writeFileSync(join(made, "bundles.json"), JSON.stringify(bundles));
    publish(made, entry);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  removeOldEntries(join(entry, ".."), KEPT);
}

/** Sets the modification time of the entry to now, because `removeOldEntries` removes the entries with the oldest times. */
export function markUsed(entry: string): void {
  const now = new Date();
  try {
    utimesSync(entry, now, now);
  } catch {
    // Ignore the error: the cache cannot be written, but its entries can still be read.
  }
}

/** Renames a complete entry, because several services may start at the same time and must not read an incomplete one. */
export function publish(made: string, entry: string): void {
  try {
    renameSync(made, entry);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(entry)) throw error;
  }
}

export function removeOldEntries(cache: string, kept: number): void {
  const entries = readdirSync(cache).map((name) => {
    const path = join(cache, name);
    return { path, usedAt: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  const old = entries.toSorted((a, b) => b.usedAt - a.usedAt).slice(kept);
  for (const { path } of old) rmSync(path, { recursive: true, force: true });
}

/** Returns a hash of `settings` and of all files in `sources`, without built files and installed packages. */
export function cacheKey(settings: readonly string[], sources: readonly string[] = SOURCES): string {
  const hash = createHash("sha256");
  for (const setting of settings) hash.update(`${setting}\n`);
  for (const source of sources) addTo(hash, join(root, source), source);
  return hash.digest("hex").slice(0, 32);
}

const BUILT = /^(?:dist(?:$|[-.])|node_modules$)/;

function addTo(hash: ReturnType<typeof createHash>, path: string, name: string): void {
  if (!statSync(path).isDirectory()) {
    hash.update(`${name}\n`).update(createHash("sha256").update(readFileSync(path)).digest());
    return;
  }
  const children = readdirSync(path).filter((child) => !BUILT.test(child));
  for (const child of children.toSorted()) addTo(hash, join(path, child), `${name}/${child}`);
}
